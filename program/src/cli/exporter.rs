//! Metrics of the program while it runs, for a Prometheus or a browser.

use std::net::SocketAddr;

use anyhow::Context as _;

/// Upper bounds of what histograms count, in seconds.
const BUCKETS: [f64; 10] = [1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 5e-2, 0.25, 1.0];

/// Records metrics from now on, and serves them at these addresses; with none of them it does nothing.
pub(super) fn serve(addresses: &[SocketAddr]) -> anyhow::Result<()> {
    if addresses.is_empty() {
        return Ok(());
    }
    let recorder =
        metrics_exporter_prometheus::PrometheusBuilder::new().set_buckets(&BUCKETS)?.build_recorder();
    for address in addresses {
        tideline_exporter::serve(*address, recorder.handle())
            .with_context(|| format!("metrics cannot be served at {address}; choose another port"))?;
        println!("Metrics are at http://{address}/metrics.");
    }
    metrics::set_global_recorder(recorder).context("metrics are recorded already")
}

//! Metrics of the program while it runs, for a Prometheus or a browser.

use std::net::SocketAddr;

use anyhow::Context as _;

/// Records metrics from now on, and serves them at these addresses; with none of them it does nothing.
pub(super) fn serve(addresses: &[SocketAddr]) -> anyhow::Result<()> {
    if addresses.is_empty() {
        return Ok(());
    }
    let recorder = tideline_exporter::recorder()?;
    for address in addresses {
        tideline_exporter::serve(*address, recorder.handle())
            .with_context(|| format!("metrics cannot be served at {address}; choose another port"))?;
        println!("Metrics are at http://{address}/metrics.");
    }
    metrics::set_global_recorder(recorder).context("metrics are recorded already")
}

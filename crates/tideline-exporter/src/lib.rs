//! Serves the metrics of a program over HTTP, as a Prometheus reads them. There is one answer, so whatever is asked
//! gets it: no server of a web framework is needed for that.

use std::io::Result;
use std::net::SocketAddr;
use std::time::Duration;

use metrics_exporter_prometheus::{
    BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{interval, sleep, timeout};

/// The interval at which what histograms were told is put together; until then it takes memory.
const UPKEEP: Duration = Duration::from_secs(5);
/// Bytes of a line of a request.
const LINE_MAX: u64 = 8_192;
/// Longest answer to a scrape.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// A pause while no connection can be accepted, as with too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Upper ends of the buckets of times, in seconds: the same everywhere, so that they can be added up, and beyond what
/// anybody is warned of (docs/metrics.md): above the last one a quantile is that one.
const SECONDS: [f64; 16] =
    [1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0];
/// Upper ends of the buckets of counts: authors pulled, sources merged, entries of a home.
const COUNTS: [f64; 12] = [0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 400.0, 800.0, 2_000.0];

/// Makes a recorder of metrics with the buckets that the engine's and the server's histograms need.
///
/// # Errors
///
/// None, as long as the buckets are some.
pub fn recorder() -> std::result::Result<PrometheusRecorder, BuildError> {
    let seconds = Matcher::Suffix("_seconds".to_owned());
    let builder = PrometheusBuilder::new().set_buckets(&COUNTS)?.set_buckets_for_metric(seconds, &SECONDS)?;
    Ok(builder.build_recorder())
}

/// Serves these metrics at an address, from now on until the process ends. Within a runtime.
///
/// # Errors
///
/// The address cannot be had, which is told at once.
pub fn serve(address: SocketAddr, metrics: PrometheusHandle) -> Result<()> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    tokio::spawn(answer_all(TcpListener::from_std(listener)?, metrics));
    Ok(())
}

/// Answers whoever connects, each for itself; and has the recorder put its figures together now and then.
async fn answer_all(listener: TcpListener, metrics: PrometheusHandle) {
    let mut upkeep = interval(UPKEEP);
    loop {
        tokio::select! {
            _ = upkeep.tick() => metrics.run_upkeep(),
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(tokio::spawn(timeout(ANSWER_MAX, answer(stream, metrics.clone())))),
                Err(_) => sleep(PAUSE).await,
            }
        }
    }
}

/// Answers a request, whichever it is, with all metrics as they are.
async fn answer(stream: TcpStream, metrics: PrometheusHandle) -> Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    // An empty line ends a request without a body.
    while (&mut stream).take(LINE_MAX).read_line(&mut line).await? > 0 && !line.trim_end().is_empty() {
        line.clear();
    }
    let told = metrics.render();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        told.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(told.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The server's ended at one second, so that a warning of fan-outs that lag by half a minute never came.
    #[test]
    fn whatever_people_are_warned_of_lies_within_the_buckets() {
        let page =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md")).unwrap();
        let bounds = page.lines().filter_map(|line| {
            let (_, asked) = line.split_once("histogram_quantile")?;
            asked.rsplit_once(" > ")?.1.trim().parse::<f64>().ok()
        });
        let bounds: Vec<f64> = bounds.collect();
        assert!(!bounds.is_empty());
        assert!(bounds.iter().all(|bound| SECONDS.iter().any(|end| end > bound)), "{bounds:?}");
        assert!(SECONDS.is_sorted() && COUNTS.is_sorted());
    }

    #[tokio::test]
    async fn times_and_counts_have_buckets_of_their_own() {
        let recorder = recorder().unwrap();
        let metrics = recorder.handle();
        metrics::with_local_recorder(&recorder, || {
            metrics::histogram!("a_lag_seconds").record(31.0);
            metrics::histogram!("home_records").record(300.0);
        });
        let told = metrics.render();
        for wanted in [
            "a_lag_seconds_bucket{le=\"10\"} 0",
            "a_lag_seconds_bucket{le=\"60\"} 1",
            "home_records_bucket{le=\"200\"} 0",
            "home_records_bucket{le=\"400\"} 1",
        ] {
            assert!(told.contains(wanted), "{wanted}: {told}");
        }
    }
}

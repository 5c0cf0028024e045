//! Serves the metrics of a program over HTTP, as a Prometheus reads them. There is one answer, so whatever is asked
//! gets it: no server of a web framework is needed for that.

use std::io::Result;
use std::net::SocketAddr;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
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

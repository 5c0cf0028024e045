//! A connection that waits for its client to read, and not for ever.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use metrics::counter;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::CONNECTIONS_CUT;

/// So much has to be taken in that time: a client that takes one byte after the other takes nothing.
const PORTION: usize = 16 * 1024;

/// A stream that breaks off once nobody has taken what was written for too long.
///
/// It lies below TLS: what is counted is what a client's own machine has taken.
pub(super) struct PatientStream<S> {
    stream: S,
    time: Duration,
    /// Runs while something waits to be taken.
    ends: Option<Pin<Box<Sleep>>>,
    /// Bytes that were taken since it runs.
    taken: usize,
}

impl<S> PatientStream<S> {
    pub(super) fn new(stream: S, time: Duration) -> Self {
        Self { stream, time, ends: None, taken: 0 }
    }

    fn taken_all(&mut self) {
        (self.ends, self.taken) = (None, 0);
    }

    /// Decides what becomes of a write that has come to this.
    fn waited(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Ok(bytes)) => {
                self.taken += bytes;
                if self.taken >= PORTION {
                    self.taken_all();
                }
                written
            }
            Poll::Pending => {
                if self.ends.is_none() {
                    (self.ends, self.taken) = (Some(Box::pin(sleep(self.time))), 0);
                }
                match self.ends.as_mut().map(|ends| ends.as_mut().poll(context)) {
                    Some(Poll::Ready(())) => {
                        counter!(CONNECTIONS_CUT, "why" => "unread").increment(1);
                        let text = "nobody takes what is answered";
                        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, text)))
                    }
                    _ => Poll::Pending,
                }
            }
            Poll::Ready(Err(_)) => written,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PatientStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, to)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PatientStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.waited(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.waited(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Flushes, as whoever writes does once all is written: then nobody waits.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        if matches!(flushed, Poll::Ready(Ok(()))) {
            self.taken_all();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::{Instant, advance};

    use super::*;

    const TIME: Duration = Duration::from_secs(30);

    async fn is_stuck(stream: &mut PatientStream<tokio::io::DuplexStream>) -> bool {
        let once = poll_fn(|context| Poll::Ready(Pin::new(&mut *stream).poll_write(context, &[0; PORTION])));
        once.await.is_pending()
    }

    /// A client that takes a portion in time may take as long as it likes in all; one that takes less is cut off, and
    /// one that was slow once and has taken all begins anew.
    #[tokio::test(start_paused = true)]
    async fn a_client_has_to_take_a_portion_in_time() {
        let (mut client, server) = duplex(PORTION);
        let mut server = PatientStream::new(server, TIME);
        server.write_all(&[0; PORTION]).await.unwrap();
        assert!(is_stuck(&mut server).await);
        for _ in 0..3 {
            advance(TIME - Duration::from_secs(1)).await;
            client.read_exact(&mut vec![0; PORTION]).await.unwrap();
            server.write_all(&[0; PORTION]).await.unwrap();
            assert!(is_stuck(&mut server).await);
        }
        advance(TIME / 2).await;
        client.read_exact(&mut [0; 10]).await.unwrap();
        server.write_all(&[0; 10]).await.unwrap();
        server.flush().await.unwrap();
        advance(TIME * 2).await;
        assert!(is_stuck(&mut server).await, "all was taken: nobody has waited since");

        let (began, trickle) = (
            Instant::now(),
            tokio::spawn(async move {
                // One byte after the other, as long as there is somebody.
                while client.read_exact(&mut [0; 1]).await.is_ok() {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }),
        );
        let error = server.write_all(&[0; 4 * PORTION]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(began.elapsed() <= TIME, "{:?}", began.elapsed());
        drop(server);
        trickle.await.unwrap();
    }
}

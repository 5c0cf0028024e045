//! The end of a server, told to all who have to know.

use tokio::sync::watch;

/// A handle that says whether the server is going down. Copies are one.
#[derive(Debug, Clone)]
pub struct Shutdown(watch::Sender<bool>);

impl Default for Shutdown {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Shutdown {
    /// Begins it. There is no way back.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }

    /// Whether it has begun.
    pub fn has_begun(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it has begun.
    pub async fn begun(&self) {
        // It fails once all senders are gone, and this is one.
        let _ = self.0.subscribe().wait_for(|begun| *begun).await;
    }
}

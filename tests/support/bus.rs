//! Servers that are cut off from each other, while clients reach all of them: TCP proxies before the ports of the
//! cluster's bus, which are told to the others instead of the servers' own. What is cut off is held back, as by a
//! network that loses it and carries it in the end: connections that were there go on later, with what was written
//! meanwhile.

use std::net::IpAddr;

use tideline::{Error, ErrorKind};
use tideline_local_cluster::{ClusterSpec, LocalCluster};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// From where the first node connects to others, the next ones from the addresses behind it: so it is known whose
/// connection it is.
const FIRST: u8 = 10;
/// Where ports are looked for: each node has one, and one for its bus behind its proxy.
const PORTS: std::ops::Range<u16> = 17_000..27_000;
const PORTS_STEP: usize = 500;
const BUS_FROM_PORT: u16 = 10_000;

/// Who doesn't hear whom on the bus. Nodes by their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    Nobody,
    /// This one and the others.
    Off(usize),
    /// The others don't hear this one. It hears that somebody takes over.
    Mute(usize),
    /// This one doesn't hear the others, which hear it: so nobody takes over, and it refuses its clients.
    Deaf(usize),
}

impl Cut {
    fn holds_back(self, from: usize, to: usize) -> bool {
        match self {
            Self::Nobody => false,
            Self::Off(node) => node == from || node == to,
            Self::Mute(node) => node == from,
            Self::Deaf(node) => node == to,
        }
    }
}

/// The bus of a cluster.
#[derive(Debug)]
pub(crate) struct Bus(watch::Sender<Cut>);

impl Bus {
    /// Starts a cluster on whose bus nodes can be cut off.
    pub(crate) async fn up(spec: ClusterSpec) -> tideline::Result<(LocalCluster, Self)> {
        let mut last = None;
        for base in PORTS.step_by(PORTS_STEP) {
            let (bus, spec) = Self::before(spec.clone(), base).await?;
            match LocalCluster::up(spec).await {
                Ok(cluster) => return Ok((cluster, bus)),
                // Most likely a port that is taken.
                Err(e) => last = Some(e),
            }
        }
        Err(last.unwrap_or_else(|| Error::new(ErrorKind::Unavailable, "no ports were tried")))
    }

    /// Proxies before the bus ports of nodes whose own ports begin there.
    async fn before(spec: ClusterSpec, base: u16) -> tideline::Result<(Self, ClusterSpec)> {
        let (cut, watched) = watch::channel(Cut::Nobody);
        let nodes = usize::from(spec.primaries) * (1 + usize::from(spec.replicas));
        let mut spec = spec.port_base(base).config("protected-mode", "no");
        for (node, port) in (0..nodes).zip(base + BUS_FROM_PORT..) {
            let (listener, announced) = listen().await.map_err(|e| {
                let text = format!("a proxy before a bus port can't listen: {e}");
                Error::new(ErrorKind::Unavailable, text)
            })?;
            spec = spec.node_config(node, "cluster-announce-bus-port", announced.to_string());
            spec =
                spec.node_config(node, "bind-source-addr", format!("127.0.0.{}", usize::from(FIRST) + node));
            tokio::spawn(take_in(listener, port, node, watched.clone()));
        }
        Ok((Self(cut), spec))
    }

    pub(crate) fn cut(&self, cut: Cut) {
        self.0.send_replace(cut);
    }
}

async fn listen() -> std::io::Result<(TcpListener, u16)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

async fn take_in(listener: TcpListener, port: u16, to: usize, cut: watch::Receiver<Cut>) {
    while let Ok((stream, addr)) = listener.accept().await {
        let IpAddr::V4(ip) = addr.ip() else { continue };
        let from = usize::from(ip.octets()[3].saturating_sub(FIRST));
        let cut = cut.clone();
        tokio::spawn(async move {
            let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else { return };
            let ((near, near_end), (far, far_end)) = (stream.into_split(), server.into_split());
            tokio::select! {
                () = pass_on(near, far_end, cut.clone(), (from, to)) => {}
                () = pass_on(far, near_end, cut, (to, from)) => {}
            }
        });
    }
}

async fn pass_on(
    mut source: OwnedReadHalf,
    mut target: OwnedWriteHalf,
    mut cut: watch::Receiver<Cut>,
    (from, to): (usize, usize),
) {
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(many @ 1..) = source.read(&mut bytes).await {
        if cut.wait_for(|cut| !cut.holds_back(from, to)).await.is_err() {
            return;
        }
        if target.write_all(&bytes[..many]).await.is_err() {
            return;
        }
    }
}

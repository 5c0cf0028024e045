//! Addresses for programs that a test starts.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// Finds addresses that are free, and stay so until a program listens there: loopback has one for each process, whose
/// ports nobody else takes meanwhile. Outgoing connections of all others leave from 127.0.0.1.
pub(crate) fn free<const N: usize>() -> [SocketAddr; N] {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let own = Ipv4Addr::new(127, 64 | high, middle, low);
    // Held until all are known, so that no two are the same.
    let held = [(); N].map(|()| TcpListener::bind((own, 0)).unwrap());
    held.each_ref().map(|listener| listener.local_addr().unwrap())
}

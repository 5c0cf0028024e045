//! Addresses for programs that a test starts.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Mutex;

/// What tests of this process were given already.
static GIVEN: Mutex<BTreeSet<SocketAddr>> = Mutex::new(BTreeSet::new());

/// Finds addresses that are free, and stay so until a program listens there: loopback has one for each process, whose
/// ports nobody else takes meanwhile. Outgoing connections of all others leave from 127.0.0.1.
pub(crate) fn free<const N: usize>() -> [SocketAddr; N] {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let own = Ipv4Addr::new(127, 64 | high, middle, low);
    let mut given = GIVEN.lock().unwrap();
    [(); N].map(|()| {
        loop {
            let address = TcpListener::bind((own, 0)).unwrap().local_addr().unwrap();
            if given.insert(address) {
                return address;
            }
        }
    })
}

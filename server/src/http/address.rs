//! The address of a client: that of its connection, or what a proxy says that is trusted to say so. Pure.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;

use super::refusal::Refusal;

/// Entries of `X-Forwarded-For` that are looked at, from the last: proxies behind each other.
const ENTRIES_MAX: usize = 32;
const FORWARDED_FOR: &str = "x-forwarded-for";

/// The address of a client, as far as it is known: an extension of every request, put there by the
/// layers; and an extractor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientAddress(pub IpAddr);

/// Gives the address to whoever limits by it, and fails without one: a request that came by no listener has none.
impl<S: Sync> FromRequestParts<S> for ClientAddress {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        parts.extensions.get().copied().ok_or_else(|| {
            tracing::error!("a request has no address: its listener tells none");
            Refusal::broken()
        })
    }
}

/// Addresses that begin alike: `10.0.0.0/8`, `fd00::/8`, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

/// Whether a host is this machine itself, by its usual name or its address.
pub fn is_this_machine(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|host| host.is_loopback())
}

impl Network {
    /// This machine itself.
    pub fn loopback() -> [Self; 2] {
        let (v4, v6) = (IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), IpAddr::V6(Ipv6Addr::LOCALHOST));
        [Self { address: v4, bits: 8 }, Self { address: v6, bits: 128 }]
    }

    /// Whether an address lies in it. One of IPv4 that is written as one of IPv6 is the same one.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (ours, bits) = (octets(self.address), usize::from(self.bits));
        let theirs = octets(address.to_canonical());
        let (whole, rest) = (bits / 8, bits % 8);
        let mask = u8::try_from(0xff00_u16 >> rest & 0xff).unwrap_or_default();
        ours.len() == theirs.len()
            && ours[..whole] == theirs[..whole]
            && (rest == 0 || ours[whole] & mask == theirs[whole] & mask)
    }
}

/// An address as it is counted: one of IPv6 by its first half, since everybody has all that begin so.
pub fn counted_as(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("{text:?} is no network: 10.0.0.0/8, fd00::/8, or one address");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| refused())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| refused())?;
        let (all, mapped) = (if address.is_ipv4() { 32 } else { 128 }, address.to_canonical());
        let bits = bits.unwrap_or(all);
        if bits > all {
            return Err(refused());
        }
        // `::ffff:10.0.0.0/104` is `10.0.0.0/8`.
        match (mapped.is_ipv4() && address.is_ipv6(), bits.checked_sub(96)) {
            (true, Some(bits)) => Ok(Self { address: mapped, bits }),
            _ => Ok(Self { address, bits }),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// Proxies whose word is taken for whom they speak. None by default: then nobody's is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies(pub Vec<Network>);

impl TrustedProxies {
    /// Whether an address is that of such a proxy.
    pub fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }

    /// Whether a request came from who is connected, and nobody in between says otherwise: it carries no
    /// `X-Forwarded-For`, believed or not.
    pub fn is_direct(headers: &HeaderMap) -> bool {
        !headers.contains_key(FORWARDED_FOR)
    }

    /// Whether a request came from one of these networks itself: whoever speaks for somebody else is a proxy, and its
    /// clients would have no limits at all.
    pub fn is_exempt(exempt: &[Network], peer: IpAddr, headers: &HeaderMap) -> bool {
        exempt.iter().any(|network| network.contains(peer)) && Self::is_direct(headers)
    }

    /// The client that sent a request: whoever is connected, unless that is such a proxy. Then the last in
    /// `X-Forwarded-For` who is none, as each proxy appends whom it was asked by; what stands before that one anybody
    /// may have written.
    ///
    /// An entry that is no address ends the search: the client is the proxy that passed it on.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        let lines = headers.get_all(FORWARDED_FOR).iter().rev();
        let entries = lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
        for entry in entries.take(ENTRIES_MAX) {
            if !self.trusts(client) {
                break;
            }
            match address_in(entry) {
                Some(address) => client = address,
                None => break,
            }
        }
        client
    }
}

/// An address, with a port or without.
fn address_in(entry: &[u8]) -> Option<IpAddr> {
    let entry = std::str::from_utf8(entry).ok()?.trim();
    let bare = entry.strip_prefix('[').and_then(|entry| entry.strip_suffix(']')).unwrap_or(entry);
    let address = bare.parse::<IpAddr>().ok();
    address.or_else(|| Some(entry.parse::<SocketAddr>().ok()?.ip())).map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn proxies(networks: &[&str]) -> TrustedProxies {
        TrustedProxies(networks.iter().map(|network| network.parse().unwrap()).collect())
    }

    fn client(networks: &[&str], peer: &str, lines: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED_FOR, HeaderValue::from_str(line).unwrap());
        }
        proxies(networks).client(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn a_stranger_speaks_for_itself_alone() {
        assert_eq!(client(&[], "10.0.0.1", &["1.2.3.4"]), "10.0.0.1");
        assert_eq!(client(&["10.0.0.0/8"], "11.0.0.1", &["1.2.3.4"]), "11.0.0.1");
    }

    #[test]
    fn a_trusted_proxy_names_the_last_who_is_none() {
        let ours = ["10.0.0.0/8", "fd00::/8"];
        assert_eq!(client(&ours, "10.0.0.1", &["6.6.6.6, 1.2.3.4"]), "1.2.3.4");
        assert_eq!(client(&ours, "::ffff:10.0.0.1", &["6.6.6.6, 1.2.3.4:99, 10.1.1.1"]), "1.2.3.4");
        assert_eq!(client(&ours, "fd00::1", &["6.6.6.6", "[2001:db8::1]:443,10.0.0.2"]), "2001:db8::1");
        assert_eq!(client(&ours, "10.0.0.1", &["1.2.3.4, junk, 10.0.0.2"]), "10.0.0.2");
        assert_eq!(client(&ours, "10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(client(&ours, "10.0.0.1", &["10.0.0.3"]), "10.0.0.3");
    }

    #[test]
    fn a_network_has_the_addresses_that_begin_alike() {
        let has = |network: &str, address: &str| {
            network.parse::<Network>().unwrap().contains(address.parse().unwrap())
        };
        assert!(has("10.0.0.0/9", "10.127.0.1") && !has("10.0.0.0/9", "10.128.0.1"));
        assert!(has("::1", "::1") && !has("::1", "::2") && !has("::/0", "10.0.0.1"));
        assert!(has("0.0.0.0/0", "255.0.0.1") && has("::ffff:10.0.0.0/104", "10.9.9.9"));
        for text in ["", "10.0.0.0/33", "::/129", "10.0.0", "10.0.0.0/", "10.0.0.0/-1", "a/8"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_of_ipv6_count_by_their_first_half() {
        let of = |address: &str| counted_as(address.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:192.0.2.1"), "192.0.2.1");
    }

    proptest! {
        #[test]
        fn whatever_is_forwarded_a_client_has_an_address(
            line in prop::collection::vec(prop_oneof![Just(b','), Just(b'.'), Just(b'1'), 0x20..=0xff_u8], 0..200),
            peer: [u8; 4],
        ) {
            let mut headers = HeaderMap::new();
            if let Ok(line) = HeaderValue::from_bytes(&line) {
                headers.append(FORWARDED_FOR, line);
            }
            let peer = IpAddr::from(peer);
            prop_assert_eq!(TrustedProxies::default().client(peer, &headers), peer);
            proxies(&["0.0.0.0/0"]).client(peer, &headers);
        }

        #[test]
        fn any_text_is_a_network_or_none(text in "[0-9a-f.:/]{0,24}|.{0,30}") {
            if let Ok(network) = text.parse::<Network>() {
                prop_assert!(network.contains(network.address));
                prop_assert_eq!(network.to_string().parse::<Network>().unwrap(), network);
            }
        }
    }
}

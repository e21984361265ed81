//! Ranges of addresses: where somebody comes from decides what they may do.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::str::FromStr;

/// Ranges of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources(Vec<Network>);

impl Sources {
    pub fn new(networks: Vec<Network>) -> Self {
        Self(networks)
    }

    pub fn contain(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(address))
    }
}

/// A range of addresses, such as `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

/// A text that is not a range of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an address or a range such as \"10.0.0.0/8\", found {found:?}")]
pub struct NotANetwork {
    found: String,
}

impl Network {
    fn contains(self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                // All of them if there are no bits: a shift by the whole width is none.
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                ours.to_bits() & mask == theirs.to_bits() & mask
            }
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                ours.to_bits() & mask == theirs.to_bits() & mask
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        let wrong = || NotANetwork { found: text.to_owned() };
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            // Digits only: `+8` parses as a number and is none.
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => {
                bits.parse().ok().filter(|bits| *bits <= most).ok_or_else(wrong)?
            }
            Some(_) => return Err(wrong()),
            None => most,
        };
        Ok(Self { address, bits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(texts: &[&str]) -> Sources {
        Sources::new(texts.iter().map(|text| text.parse().unwrap()).collect())
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_range_contains_its_first_and_last_address_and_no_neighbour() {
        let ten = sources(&["10.0.0.0/8"]);
        for (text, is_inside) in
            [("10.0.0.0", true), ("10.255.255.255", true), ("9.255.255.255", false), ("11.0.0.0", false)]
        {
            assert_eq!(ten.contain(address(text)), is_inside, "{text}");
        }
        assert!(ten.contain(address("::ffff:10.1.2.3")), "an IPv4 client of an IPv6 socket");
        assert!(!ten.contain(address("::1")));
        let six = sources(&["2001:db8::/33"]);
        assert!(six.contain(address("2001:db8:7fff::1")) && !six.contain(address("2001:db8:8000::1")));
    }

    #[test]
    fn a_single_address_and_everybody_are_ranges_too() {
        assert!(sources(&["127.0.0.1"]).contain(address("127.0.0.1")));
        assert!(!sources(&["127.0.0.1"]).contain(address("127.0.0.2")));
        assert!(sources(&["0.0.0.0/0"]).contain(address("203.0.113.7")));
        assert!(sources(&["::/0"]).contain(address("2001:db8::1")));
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/+8", "ten/8", "10.0.0.0/8/8"] {
            assert!(text.parse::<Network>().is_err(), "{text:?}");
        }
    }
}

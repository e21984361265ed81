//! Secrets: made from chance, shown once, kept as a hash.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use sha2::{Digest, Sha256};

/// Where random bytes come from. Injected, so that a test can name what it will get.
#[derive(Clone)]
pub struct Chance(Arc<Fill>);

type Fill = dyn Fn(&mut [u8]) + Send + Sync;

impl Chance {
    /// The system's.
    #[expect(clippy::disallowed_methods, reason = "this is the injected generator that all others ask")]
    pub fn system() -> Self {
        Self::new(|bytes| getrandom::fill(bytes).expect("the system has randomness for us"))
    }

    pub fn new(fill: impl Fn(&mut [u8]) + Send + Sync + 'static) -> Self {
        Self(Arc::new(fill))
    }

    /// A random name of `N` bytes, in hex.
    pub(crate) fn name<const N: usize>(&self) -> String {
        let mut bytes = [0; N];
        (self.0)(&mut bytes);
        hex(&bytes)
    }
}

impl fmt::Debug for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Chance")
    }
}

/// Something that opens a door. It cannot be printed by accident.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

/// 256 bits.
const BYTES: usize = 32;

impl Secret {
    /// A new one. Its beginning says what it is, for those who find it where it does not belong.
    pub(crate) fn new(chance: &Chance) -> Self {
        Self(format!("drowse_{}", chance.name::<BYTES>()))
    }

    /// One that somebody shows.
    pub(crate) fn presented(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// What is stored. One round is enough: there is nothing to guess in 256 random bits.
    ///
    /// The store looks the hash up in an index, whose time may tell how far it agrees with another hash. That is
    /// no help to anybody: who cannot choose the hash of what they try cannot walk towards the right one.
    pub(crate) fn hash(&self) -> Vec<u8> {
        Sha256::digest(self.0.as_bytes()).to_vec()
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes all that is written to it");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_all_of_256_bits_and_never_shown() {
        let first = Secret::new(&Chance::system());
        assert_eq!(first.reveal().len(), "drowse_".len() + 64);
        assert_ne!(first, Secret::new(&Chance::system()));
        assert_eq!(format!("{first:?}"), "Secret");
        assert_eq!(first.hash(), Secret::presented(first.reveal()).hash());
        assert_eq!(hex(&[0, 0xa, 0xff]), "000aff");
    }
}

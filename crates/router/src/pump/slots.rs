//! The places of a pump's connections, and how the kernel names them.

use super::conn::{Conn, Key, Side};

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Bell,
    /// It is time to look at those who are not watched.
    Look,
    Port(u64),
    /// A socket of whoever has this place, and which one: a word about one that was there before it is about nobody.
    Conn(u32, Side, Mark),
}

/// Tells the sockets apart that have the same place one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark(u32);

impl Mark {
    /// The next one. They come back after two thousand millions, when nobody speaks of the first any more.
    pub(super) fn next(self) -> Self {
        Self((self.0 + 1) & MARKS)
    }
}

const PORT: u64 = 1 << 63;

/// As many bits as a token has to spare.
const MARKS: u32 = (1 << 31) - 1;
const SLOTS: u64 = (1 << 31) - 1;

impl Token {
    pub(super) fn pack(self) -> u64 {
        match self {
            Self::Bell => u64::MAX,
            Self::Look => u64::MAX - 1,
            Self::Port(id) => PORT | id,
            Self::Conn(slot, side, Mark(mark)) => {
                u64::from(mark) << 32 | (u64::from(slot) & SLOTS) << 1 | u64::from(side == Side::Worker)
            }
        }
    }

    pub(super) fn unpack(packed: u64) -> Self {
        if packed == u64::MAX {
            Self::Bell
        } else if packed == u64::MAX - 1 {
            Self::Look
        } else if packed & PORT != 0 {
            Self::Port(packed & !PORT)
        } else {
            let side = if packed & 1 == 0 { Side::Client } else { Side::Worker };
            let slot = u32::try_from(packed >> 1 & SLOTS).expect("31 bits");
            Self::Conn(slot, side, Mark(u32::try_from(packed >> 32).expect("31 bits")))
        }
    }
}

/// The places. One that was left is not given away before the round of events is over: what is still to be read
/// in that round is about whoever left.
#[derive(Debug, Default)]
pub(super) struct Slots {
    places: Vec<Place>,
    free: Vec<u32>,
    left: Vec<u32>,
    taken: usize,
}

#[derive(Debug, Default)]
struct Place {
    turn: Mark,
    /// Of the socket to a worker that was here last. It may stay open elsewhere for a moment (in a child between its fork
    /// and its exec), and is watched for as long.
    call: Mark,
    conn: Option<Box<Conn>>,
}

impl Slots {
    pub(super) const fn len(&self) -> usize {
        self.taken
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.taken == 0
    }

    /// Puts a connection into a place. It learns its turn there.
    pub(super) fn put(&mut self, mut conn: Box<Conn>) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place::default());
            u32::try_from(self.places.len() - 1).expect("there are fewer files than that")
        });
        let place = &mut self.places[slot as usize];
        (place.turn, place.call) = (place.turn.next(), place.call.next());
        (conn.turn, conn.call) = (place.turn, place.call);
        place.conn = Some(conn);
        self.taken += 1;
        slot
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Conn> {
        self.places.get_mut(slot as usize)?.conn.as_deref_mut()
    }

    /// Whoever is meant, if they are still there.
    pub(super) fn of(&mut self, key: Key) -> Option<&mut Conn> {
        self.get_mut(key.slot).filter(|conn| conn.turn == key.turn)
    }

    /// Whoever has this place, if it is their socket that is meant and not one that was here before.
    pub(super) fn with_socket(&mut self, slot: u32, side: Side, mark: Mark) -> Option<&mut Conn> {
        self.get_mut(slot).filter(|conn| conn.mark(side) == mark)
    }

    pub(super) fn take(&mut self, slot: u32) -> Option<Box<Conn>> {
        let place = self.places.get_mut(slot as usize)?;
        let conn = place.conn.take()?;
        place.call = conn.call;
        self.left.push(slot);
        self.taken -= 1;
        Some(conn)
    }

    pub(super) fn free_places(&mut self) {
        self.free.append(&mut self.left);
    }

    /// All places that are taken.
    pub(super) fn slots(&self) -> Vec<u32> {
        let taken = self.places.iter().zip(0..).filter(|(place, _)| place.conn.is_some());
        taken.map(|(_, slot)| slot).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_back_as_it_was() {
        for token in [
            Token::Bell,
            Token::Look,
            Token::Port(0),
            Token::Port(7),
            Token::Conn(0, Side::Client, Mark::default()),
            Token::Conn(0, Side::Worker, Mark(1)),
            Token::Conn(u32::MAX >> 1, Side::Client, Mark(MARKS)),
            Token::Conn(u32::MAX >> 1, Side::Worker, Mark(MARKS).next()),
        ] {
            assert_eq!(Token::unpack(token.pack()), token);
        }
    }
}

use proptest::prelude::*;

use super::*;

fn long(bytes: &[u8]) -> Vec<u8> {
    [&u16::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
}

fn extension(kind: u16, inside: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &long(inside)].concat()
}

fn server_name(name: &str) -> Vec<u8> {
    extension(SERVER_NAME, &long(&[&[HOST_NAME][..], &long(name.as_bytes())].concat()))
}

/// A message with these extensions; `None`: without any.
fn message(extensions: Option<&[Vec<u8>]>) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([4, 1, 2, 3, 4]);
    body.extend(long(&[0x13, 0x01, 0x13, 0x02]));
    body.extend([1, 0]);
    if let Some(extensions) = extensions {
        body.extend(long(&extensions.concat()));
    }
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[CLIENT_HELLO][..], &length[1..], &body].concat()
}

/// In records of so many bytes.
fn records(message: &[u8], size: usize) -> Vec<u8> {
    message.chunks(size).flat_map(|piece| [&[HANDSHAKE, 3, 1][..], &long(piece)].concat()).collect()
}

fn hello(extensions: &[Vec<u8>]) -> Vec<u8> {
    records(&message(Some(extensions)), LONGEST_RECORD)
}

fn read(bytes: &[u8]) -> Result<Option<Wanted>, NotTls> {
    Hello::default().feed(bytes)
}

fn wants(name: &str) -> Wanted {
    Wanted::Host(HostName::new(name).unwrap())
}

#[test]
fn a_name_among_other_extensions_is_found() {
    let other = extension(43, &[2, 3, 4]);
    let bytes = hello(&[other.clone(), server_name("Lab.Example.org"), other]);
    assert_eq!(read(&bytes), Ok(Some(wants("lab.example.org"))));
}

#[test]
fn who_names_nobody_wants_nobody() {
    assert_eq!(read(&hello(&[])), Ok(Some(Wanted::Nobody)));
    assert_eq!(read(&records(&message(None), 9_999)), Ok(Some(Wanted::Nobody)));
    assert_eq!(read(&hello(&[server_name("not a name")])), Ok(Some(Wanted::Nobody)));
    let other_kind = extension(SERVER_NAME, &long(&[&[9][..], &long(b"x")].concat()));
    assert_eq!(read(&hello(&[other_kind])), Ok(Some(Wanted::Nobody)));
}

#[test]
fn what_is_made_wrong_is_no_tls() {
    let twice = [HOST_NAME, 0, 1, b'a', HOST_NAME, 0, 1, b'b'];
    for (why, bytes) in [
        ("two extensions", hello(&[server_name("a"), server_name("b")])),
        ("two names", hello(&[extension(SERVER_NAME, &long(&twice))])),
        ("an empty list", hello(&[extension(SERVER_NAME, &[0, 0])])),
        ("a list that ends early", hello(&[extension(SERVER_NAME, &[0, 9, 0, 0, 1, b'a'])])),
        ("an extension that ends early", hello(&[vec![0, 0, 0, 9, 1]])),
        ("HTTP", b"GET / HTTP/1.1\r\n".to_vec()),
        ("SSH", b"SSH-2.0-x\r\n".to_vec()),
        ("a record of another kind", vec![23, 3, 3, 0, 1, 0]),
        ("another version", vec![22, 2]),
        ("an empty record", vec![22, 3, 1, 0, 0]),
        ("a record that is too long", vec![22, 3, 1, 0x40, 1]),
        ("another message", records(&[2, 0, 0, 0], 9)),
        ("a message that is too long", records(&[CLIENT_HELLO, 1, 0, 0], 9)),
    ] {
        assert_eq!(read(&bytes), Err(NotTls), "{why}");
    }
}

#[test]
fn a_client_that_never_comes_to_the_point_is_not_kept() {
    let message = [&[CLIENT_HELLO, 0, 0x40, 0][..], &[0; LONGEST_RECORD - 1]].concat();
    let mut hello = Hello::default();
    let mut outcome = Ok(None);
    // One byte a record: six bytes for each of the message.
    for record in records(&message, 1).chunks(6) {
        outcome = hello.feed(record);
        if outcome.is_err() {
            break;
        }
    }
    assert_eq!(outcome, Err(NotTls));
    assert!(hello.into_bytes().len() <= LONGEST + 6);
}

proptest! {
    /// Split into whatever records and packets: the same outcome, and every byte is kept.
    #[test]
    fn any_split_says_the_same(
        name in "[a-z]{1,8}(\\.[a-z]{1,8}){0,3}",
        padding in 0_usize..600,
        record_size in 1_usize..900,
        cuts in prop::collection::vec(1_usize..400, 0..40),
        more in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let message = message(Some(&[extension(21, &vec![0; padding]), server_name(&name)]));
        let whole = [records(&message, record_size), more].concat();
        prop_assert_eq!(read(&whole), Ok(Some(wants(&name))));
        let (mut hello, mut rest, mut seen) = (Hello::default(), whole.as_slice(), None);
        let mut cuts = cuts.into_iter();
        while seen.is_none() && !rest.is_empty() {
            let (packet, later) = rest.split_at(cuts.next().unwrap_or(1).min(rest.len()));
            seen = hello.feed(packet).unwrap();
            rest = later;
        }
        prop_assert_eq!(seen, Some(wants(&name)));
        prop_assert_eq!([hello.into_bytes(), rest.to_vec()].concat(), whole);
    }

    /// Anything at all, and near misses: no panic, and what is kept is bounded.
    #[test]
    fn nothing_makes_it_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        is_near_miss in any::<bool>(),
    ) {
        let mut bytes = if is_near_miss { hello(&[server_name("lab.example.org")]) } else { bytes };
        for (at, byte) in flips {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        let at_once = read(&bytes);
        let mut hello = Hello::default();
        let mut one_by_one = Ok(None);
        for byte in &bytes {
            one_by_one = hello.feed(&[*byte]);
            if one_by_one != Ok(None) {
                break;
            }
        }
        prop_assert_eq!(at_once, one_by_one);
    }
}

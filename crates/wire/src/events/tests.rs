use proptest::prelude::*;

use super::*;

fn frame(id: Option<&str>, event: Option<&str>, data: &str) -> Frame {
    Frame { id: id.map(Into::into), event: event.map(Into::into), data: data.into() }
}

fn read(text: &[u8]) -> Vec<Frame> {
    Parser::default().push(text).unwrap()
}

#[test]
fn what_is_written_can_be_read_again() {
    let event = frame(Some("1f-42"), Some("worker.paused"), "{\"a\":1}");
    assert_eq!(encode(&event), "id: 1f-42\nevent: worker.paused\ndata: {\"a\":1}\n\n");
    assert_eq!(read(encode(&event).as_bytes()), [event]);
}

#[test]
fn comments_unknown_fields_and_empty_frames_say_nothing() {
    let text = format!("{}retry: 5\nunknown: x\nnothing\n\n\n\ndata: x\n\n", keepalive());
    assert_eq!(read(text.as_bytes()), [frame(None, None, "x")]);
}

#[test]
fn every_kind_of_line_end_is_one() {
    let expected = [frame(Some("1"), None, "a\nb"), frame(None, None, "c")];
    for end in ["\n", "\r", "\r\n"] {
        let text = ["\u{feff}id: 1", "data: a", "data:b", "", "data: c", "", ""].join(end);
        assert_eq!(read(text.as_bytes()), expected, "{end:?}");
    }
}

#[test]
fn the_last_id_is_that_of_the_last_whole_frame() {
    let mut parser = Parser::default();
    assert_eq!(parser.last_event_id(), None);
    parser.push(b"id: 1\ndata: a\n\nid: 2\ndata: b\n").unwrap();
    assert_eq!(parser.last_event_id(), Some("1"), "the second frame has not ended");
    parser.push(b"\ndata: no id of its own\n\n").unwrap();
    assert_eq!(parser.last_event_id(), Some("2"));
    parser.push(b"id: 3\n\n").unwrap();
    assert_eq!(parser.last_event_id(), Some("3"), "a frame without data moves on too");
    parser.push(b"id\ndata: x\n\n").unwrap();
    assert_eq!(parser.last_event_id(), None);
}

#[test]
fn a_frame_that_never_ends_is_refused() {
    let mut parser = Parser::default();
    let line = [b'x'; 1000];
    assert!((0..2_000).any(|_| parser.push(&line).is_err()), "a line without end");
    let mut parser = Parser::default();
    let line = [b"data: ".as_slice(), &line, b"\n"].concat();
    assert!((0..2_000).any(|_| parser.push(&line).is_err()), "a frame without end");
}

fn frames() -> impl Strategy<Value = Vec<Frame>> {
    let text = "[a-z€😀:\u{a0} ]{0,12}";
    let id = proptest::option::of("[a-f0-9]{1,4}-[0-9]{1,3}");
    let event = proptest::option::of("[a-z.]{1,8}");
    let data = proptest::collection::vec(text, 1..4).prop_map(|lines| lines.join("\n"));
    proptest::collection::vec((id, event, data).prop_map(|(id, event, data)| Frame { id, event, data }), 0..6)
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_frames(frames in frames(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..20)) {
        let text: String = frames.iter().map(encode).collect::<Vec<_>>().join(keepalive());
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let mut parser = Parser::default();
        let mut found = Vec::new();
        for pair in cuts.windows(2) {
            found.extend(parser.push(&text.as_bytes()[pair[0]..pair[1]]).unwrap());
        }
        prop_assert_eq!(found, frames);
    }

    #[test]
    fn any_bytes_in_any_chunks_give_the_same_as_at_once(
        bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b':'), Just(b'd'), any::<u8>()], 0..200),
        size in 1usize..9,
    ) {
        let mut parser = Parser::default();
        let parts: Vec<Frame> = bytes.chunks(size).flat_map(|chunk| parser.push(chunk).unwrap()).collect();
        let mut whole = Parser::default();
        prop_assert_eq!(parts, whole.push(&bytes).unwrap());
        prop_assert_eq!(parser.last_event_id(), whole.last_event_id());
    }
}

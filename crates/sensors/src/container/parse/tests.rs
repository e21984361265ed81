use proptest::prelude::*;

use super::*;

const DEV: &str = "Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 999999     100    0    0    0     0          0         0   999999     100    0    0    0     0       0          0
  eth0:    1000      10    0    0    0     0          0         0      234       5    0    0    0     0       0          0
  eth1:1       1    0    0    0     0          0         0      1       1    0    0    0     0       0          0
";

const STAT: &str = "4242 (a) b (c) S 17 4242 99 0 -1 4194560 2364 37463 0 19 5 3 31 15 20 0 1 0 248165 \
                    5124096 925 18446744073709551615 1 2 3 0 0 0 65536 4 1132560123 1 0 0 17 1 0 0 0 0 0";

#[test]
fn a_file_of_one_number() {
    for (text, expected) in [
        ("0\n", Some(0)),
        ("123", Some(123)),
        ("18446744073709551615\n", Some(u64::MAX)),
        ("18446744073709551616\n", None),
        ("max\n", None),
        ("", None),
        ("\n", None),
        ("-1\n", None),
        ("+1\n", None),
        ("1 2\n", None),
        ("1\n2\n", None),
    ] {
        assert_eq!(number(text), expected, "{text:?}");
    }
}

#[test]
fn a_key_is_found_whole_and_wherever_it_stands() {
    let text = "usage_usec 4417\nuser_usec 3000\nsystem_usec 1417\ninactive_file 7\ntotal_inactive_file 9\n";
    assert_eq!(keyed(text, "usage_usec"), Some(4_417));
    assert_eq!(keyed(text, "inactive_file"), Some(7));
    assert_eq!(keyed(text, "total_inactive_file"), Some(9));
    assert_eq!(keyed(text, "inactive"), None, "only a part of a key");
    assert_eq!(keyed(text, "file"), None);
    assert_eq!(keyed("usage_usec\n", "usage_usec"), None);
    assert_eq!(keyed("usage_usec many\n", "usage_usec"), None);
    assert_eq!(keyed("usage_usec 18446744073709551616\n", "usage_usec"), None);
    assert_eq!(keyed("", "usage_usec"), None);
}

#[test]
fn all_interfaces_but_loopback() {
    assert_eq!(network(DEV), Some(1_236));
    let only_loopback: String = DEV.lines().take(3).flat_map(|line| [line, "\n"]).collect();
    assert_eq!(
        network(&only_loopback),
        Some(0),
        "a container without a network moves nothing, and that is known"
    );
    let with_colon = DEV.replace("eth0:", "eth0:1:");
    assert_eq!(network(&with_colon), Some(1_236));
}

#[test]
fn a_file_of_interfaces_that_is_cut_or_odd_is_no_zero() {
    for text in [
        String::new(),
        "Inter-| Receive\n".to_owned(),
        "one\ntwo\n".to_owned(),
        DEV.replace("234", "many"),
        DEV.replace("eth0:", "eth0 "),
        DEV.replace("1000", "18446744073709551615"),
        DEV[..DEV.len() - 95].to_owned(),
    ] {
        assert_eq!(network(&text), None, "{text:?}");
    }
}

#[test]
fn a_name_with_brackets_does_not_shift_the_fields() {
    assert_eq!(life(STAT), Some(Life::Since(248_165)));
    assert_eq!(life(&STAT.replace(") S ", ") Z ")), Some(Life::Dead));
    for text in ["", "1", "1 (x", "1 (x) S", "1 (x) S 1 2 3", &STAT.replace("248165", "soon")] {
        assert_eq!(life(text), None, "{text:?}");
    }
}

proptest! {
    #[test]
    fn no_text_is_too_odd(text in "\\PC*(\n\\PC*){0,4}") {
        let _ = (number(&text), keyed(&text, "usage_usec"), network(&text), life(&text));
    }

    #[test]
    fn every_number_is_read_back(value: u64) {
        prop_assert_eq!(number(&format!("{value}\n")), Some(value));
        prop_assert_eq!(keyed(&format!("a 1\nusage_usec {value}\n"), "usage_usec"), Some(value));
    }
}

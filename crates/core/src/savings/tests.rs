use core::time::Duration;

use proptest::prelude::*;

use super::*;

const HOUR: i64 = 3600;

fn at(secs: i64) -> Timestamp {
    Timestamp::from_secs(secs)
}

fn span(hours: Range<i64>, power: Power, caused_by: impl Into<Option<Cause>>) -> PowerSpan {
    PowerSpan {
        from: at(hours.start * HOUR),
        until: at(hours.end * HOUR),
        power,
        caused_by: caused_by.into(),
    }
}

fn hours(hours: u64) -> Duration {
    Duration::from_hours(hours)
}

fn prices(per_hour: &str, paused: Option<&str>) -> Prices {
    Prices { per_hour: Some(money(per_hour)), paused_per_hour: paused.map(money) }
}

fn money(text: &str) -> Money {
    text.parse().unwrap()
}

/// Runs two hours, is frozen for three, stopped for five by Drowse; then ten hours off by hand.
fn day() -> Vec<PowerSpan> {
    vec![
        span(0..2, Power::Running, None),
        span(2..5, Power::Frozen, Cause::Drowse),
        span(5..10, Power::Stopped, Cause::Drowse),
        span(10..14, Power::Stopped, Cause::Person),
        span(14..18, Power::Frozen, Cause::External),
        span(18..20, Power::Stopped, None),
    ]
}

#[test]
fn only_sleep_that_drowse_caused_is_saved() {
    let saved = savings(day(), &prices("0.40", None), at(0)..at(24 * HOUR));
    assert_eq!(
        saved,
        Savings {
            frozen_for: hours(3),
            stopped_for: hours(5),
            running_for: hours(2),
            observed_for: hours(20),
            money: Some(money("2.00")),
        }
    );
}

#[test]
fn frozen_hours_are_money_only_with_a_price_of_their_own() {
    let of = |prices: Prices| savings(day(), &prices, at(0)..at(24 * HOUR)).money;
    assert_eq!(of(prices("0.40", Some("0.10"))), Some(money("2.90")));
    assert_eq!(of(prices("0.40", Some("0.00"))), Some(money("3.20")));
    assert_eq!(of(prices("0.40", Some("0.50"))), Some(money("1.70")), "freezing can cost");
    assert_eq!(of(Prices { per_hour: None, paused_per_hour: Some(money("0.10")) }), None);
    assert_eq!(savings([], &prices("0.40", None), at(0)..at(HOUR)).money, Some(Money::ZERO));
}

#[test]
fn spans_are_clipped_to_the_period() {
    let saved = savings(day(), &Prices::default(), at(4 * HOUR)..at(6 * HOUR));
    assert_eq!((saved.frozen_for, saved.stopped_for, saved.observed_for), (hours(1), hours(1), hours(2)));
    assert_eq!(savings(day(), &Prices::default(), at(6 * HOUR)..at(4 * HOUR)), Savings::default());
    let backwards = PowerSpan { from: at(9), until: at(3), power: Power::Running, caused_by: None };
    assert_eq!(savings([backwards], &Prices::default(), at(0)..at(10)), Savings::default());
}

#[test]
fn where_spans_contradict_each_other_the_least_saving_is_believed() {
    let saved = savings(
        [
            span(0..8, Power::Stopped, Cause::Drowse),
            span(0..8, Power::Stopped, Cause::Drowse),
            span(2..6, Power::Frozen, Cause::Drowse),
            span(3..4, Power::Running, None),
            span(5..7, Power::Stopped, Cause::Person),
        ],
        &Prices::default(),
        at(0)..at(24 * HOUR),
    );
    assert_eq!((saved.stopped_for, saved.frozen_for), (hours(3), hours(2)));
    assert_eq!((saved.running_for, saved.observed_for), (hours(1), hours(8)));
}

#[test]
fn money_is_decimal() {
    for (text, written, micros) in [
        ("0.34", "0.34", 340_000),
        ("12", "12.00", 12_000_000),
        ("-0.5", "-0.50", -500_000),
        ("0.768", "0.768", 768_000),
        ("0.0000019", "0.000001", 1),
    ] {
        assert_eq!((money(text).as_micros(), money(text).to_string().as_str()), (micros, written));
    }
    for text in ["", ".", "1.", ".5", "-", "+1", "1e3", "1,5", "NaN", "inf", "99999999999999999999"] {
        assert!(text.parse::<Money>().is_err(), "{text:?}");
    }
    assert!(Money::from_number(f64::NAN).is_err() && Money::from_number(f64::INFINITY).is_err());
    assert_eq!(Money::from_number(0.1 + 0.2), Ok(money("0.30")));

    let prices: Prices = toml::from_str("per_hour = 0.34\npaused_per_hour = 0").unwrap();
    assert_eq!(prices, Prices { per_hour: Some(money("0.34")), paused_per_hour: Some(Money::ZERO) });
    assert_eq!(serde_json::to_string(&money("0.34")).unwrap(), "0.34");
    assert!(toml::from_str::<Prices>("per_hour = '0.34'").is_err());
}

#[test]
fn a_saving_is_rounded_down() {
    let second = Duration::from_secs(1);
    assert_eq!(money("0.005").for_hours(second), Money::from_micros(1));
    assert_eq!(money("-0.005").for_hours(second), Money::from_micros(-2));
    assert_eq!(Money::from_micros(i64::MAX).for_hours(Duration::MAX), Money::from_micros(i64::MAX));
}

fn spans() -> impl Strategy<Value = Vec<PowerSpan>> {
    let power = prop::sample::select(vec![Power::Running, Power::Frozen, Power::Stopped]);
    let cause =
        prop::sample::select(vec![None, Some(Cause::Drowse), Some(Cause::Person), Some(Cause::External)]);
    let span = (0i64..60, -2i64..20, power, cause).prop_map(|(from, length, power, caused_by)| PowerSpan {
        from: at(from),
        until: at(from + length),
        power,
        caused_by,
    });
    prop::collection::vec(span, 0..12)
}

fn durations(savings: &Savings) -> [Duration; 4] {
    [savings.frozen_for, savings.stopped_for, savings.running_for, savings.observed_for]
}

proptest! {
    #[test]
    fn it_is_what_a_walk_second_by_second_finds(spans in spans(), start in 0i64..40, length in 0i64..60) {
        let found = savings(spans.clone(), &Prices::default(), at(start)..at(start + length));
        let mut walked = [0u64; 4];
        for second in start..start + length {
            let here: Vec<_> =
                spans.iter().filter(|span| span.from <= at(second) && at(second) < span.until).collect();
            let Some(power) = here.iter().map(|span| match span.power {
                Power::Running => 0,
                _ if span.caused_by != Some(Cause::Drowse) => 1,
                Power::Frozen => 2,
                Power::Stopped => 3,
            }).min() else { continue };
            walked[3] += 1;
            match power {
                0 => walked[2] += 1,
                2 => walked[0] += 1,
                3 => walked[1] += 1,
                _ => {}
            }
        }
        prop_assert_eq!(durations(&found), walked.map(Duration::from_secs));
    }

    #[test]
    fn order_does_not_matter(spans in spans().prop_shuffle()) {
        let mut ordered = spans.clone();
        ordered.sort_by_key(|span| (span.from, span.until));
        let prices = prices("0.34", Some("0.05"));
        prop_assert_eq!(savings(spans, &prices, at(5)..at(70)), savings(ordered, &prices, at(5)..at(70)));
    }

    #[test]
    fn cutting_a_span_in_two_changes_nothing(spans in spans(), cut in 0i64..80) {
        let cut = at(cut);
        let pieces: Vec<_> = spans
            .iter()
            .flat_map(|span| if span.from < cut && cut < span.until {
                vec![PowerSpan { until: cut, ..*span }, PowerSpan { from: cut, ..*span }]
            } else {
                vec![*span]
            })
            .collect();
        let prices = prices("0.34", Some("0.05"));
        prop_assert_eq!(savings(pieces, &prices, at(0)..at(80)), savings(spans, &prices, at(0)..at(80)));
    }

    #[test]
    fn periods_that_follow_one_another_add_up(spans in spans(), cut in 0i64..80) {
        let prices = prices("0.34", Some("0.05"));
        let whole = savings(spans.clone(), &prices, at(0)..at(80));
        let parts: Savings = [at(0)..at(cut), at(cut)..at(80)]
            .into_iter()
            .map(|period| savings(spans.clone(), &prices, period))
            .sum();
        prop_assert_eq!(durations(&whole), durations(&parts));
        // Each of the two kinds of sleep is rounded down once for each period.
        let lost = (whole.money.unwrap() - parts.money.unwrap()).as_micros();
        prop_assert!((0..=2).contains(&lost), "{} lost", lost);
    }

    #[test]
    fn amounts_are_read_as_they_are_written(micros in any::<i32>()) {
        let money = Money::from_micros(i64::from(micros));
        prop_assert_eq!(money.to_string().parse(), Ok(money));
        let json = serde_json::to_string(&money).unwrap();
        prop_assert_eq!(serde_json::from_str::<Money>(&json).unwrap(), money);
    }
}

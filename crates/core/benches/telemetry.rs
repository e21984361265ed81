//! How many parsed events the telemetry filter takes per second, on one core.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use drowse_core::Timestamp;
use drowse_core::telemetry::{Categories, Event, Filter, Mark, parse_time};

const FIXTURE: &str = include_str!("../tests/fixtures/cml_telemetry.json");
const EVENTS: usize = 100_000;

/// The fixture over and over, each time a fortnight later, so that no two events are copies.
fn history() -> Vec<Event<'static>> {
    let fixture: Vec<Event<'static>> = serde_json::from_str(FIXTURE).expect("the fixture is valid");
    (0i64..)
        .flat_map(|round| fixture.iter().map(move |event| (round, event)))
        .take(EVENTS)
        .map(|(round, event)| {
            let text = event.timestamp.as_deref().expect("every event of the fixture has a time");
            let time = parse_time(text).expect("every time of the fixture is readable");
            let later =
                Timestamp::from_micros(time.as_micros() + round * 14 * 86_400 * 1_000_000).to_string();
            // The mix of forms is part of the work: without a zone, with `Z`, with an offset.
            let later = match text {
                _ if text.ends_with('Z') => later,
                _ if text.contains('+') => later.replace('Z', "+00:00"),
                _ => later.replace('Z', ""),
            };
            Event { timestamp: Some(later.into()), ..event.clone() }
        })
        .collect()
}

fn filter(c: &mut Criterion) {
    let events = history();
    let categories = Categories::default();
    let now = Timestamp::from_secs(4_000_000_000);
    let pass = |mark: &Mark| {
        let mut filter = Filter::new(&categories, mark, now);
        for event in &events {
            filter.feed(event);
        }
        filter.finish()
    };
    let (digest, counted) = pass(&Mark::default());
    assert_eq!((digest.examined, digest.duplicates, digest.skipped_bad), (EVENTS as u64, 0, 0));

    let mut group = c.benchmark_group("telemetry");
    group.throughput(Throughput::Elements(EVENTS as u64));
    group.bench_function("first fetch", |b| {
        b.iter_batched(Mark::default, |mark| pass(&mark), BatchSize::SmallInput);
    });
    group.bench_function("nothing new", |b| b.iter(|| pass(&counted)));
    group.finish();

    let mut group = c.benchmark_group("telemetry from JSON");
    group.throughput(Throughput::Elements(3_136));
    group.bench_function("first fetch", |b| {
        b.iter(|| {
            let mark = Mark::default();
            let mut filter = Filter::new(&categories, &mark, now);
            filter.read(&mut serde_json::Deserializer::from_str(FIXTURE)).expect("the fixture is valid");
            filter.finish()
        });
    });
    group.finish();
}

criterion_group!(benches, filter);
criterion_main!(benches);

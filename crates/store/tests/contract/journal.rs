//! Rule 11: ids of the journal become visible in the order of the commits.

use std::sync::atomic::{AtomicBool, Ordering};

use drowse_core::journal::Entry;
use drowse_store::{EventFilter, EventId, NewEvent, Options, Resume, Store, StoreError};
use serde_json::json;

use super::support::*;

const ALL: EventFilter<'static> = EventFilter { worker: None, kind: None };

fn event(kind: &str, secs: i64) -> NewEvent {
    NewEvent { at: at(secs), worker: None, kind: kind.to_owned(), doc: json!({"n": secs}) }
}

fn append(store: &Store, event: NewEvent) {
    store
        .tx(|t| {
            t.append(event);
            Ok::<_, StoreError>(())
        })
        .unwrap();
}

fn kinds(store: &Store, after: i64) -> Vec<String> {
    let events = store.read(|t| t.events_after(after, 1_000, &ALL)).unwrap();
    events.into_iter().map(|stored| stored.event.kind).collect()
}

/// A replica has drawn its number and is slow to commit; another one writes meanwhile. Fails on PostgreSQL when
/// `commit` does not take the journal's lock: the second commits a higher number first, a reader goes on after
/// it, and the first appears behind its back.
#[test]
fn a_slow_committer_is_not_overtaken() {
    on_both(|database| {
        let store = database.open();
        if let Database::Postgres { cluster, name } = database {
            let mut slow = cluster.connect(name);
            let mut slow = slow.transaction().unwrap();
            // As the store does it.
            slow.execute("SELECT pg_advisory_xact_lock(1685221239, 1)", &[]).unwrap();
            slow.execute("INSERT INTO event (at, kind, doc) VALUES (1, 'slow', '{}')", &[]).unwrap();
            let quick = store.clone();
            let quick = Party::start(move |_| append(&quick, event("quick", 2)));
            until_blocked(database, &store, 1);
            assert_eq!(kinds(&store, 0), [""; 0]);
            slow.commit().unwrap();
            quick.end();
        } else {
            let slow = store.clone();
            let slow = Party::start(move |steps| {
                slow.tx(|t| {
                    t.append(event("slow", 1));
                    steps.stop("written");
                    Ok::<_, StoreError>(())
                })
            });
            slow.reaches("written");
            let quick = store.clone();
            let quick = Party::start(move |_| append(&quick, event("quick", 2)));
            until_blocked(database, &store, 1);
            assert_eq!(kinds(&store, 0), [""; 0]);
            slow.finish().unwrap();
            quick.end();
        }
        assert_eq!(kinds(&store, 0), ["slow", "quick"]);
    });
}

/// Writers of two stores and one reader who always goes on after the last number it saw. Fails on PostgreSQL,
/// nearly always, without the journal's lock.
#[test]
fn a_reader_that_goes_on_after_its_last_number_misses_nothing() {
    const WRITERS: usize = 4;
    const EACH: usize = 60;
    on_both(|database| {
        let reader = database.open();
        let is_over = AtomicBool::new(false);
        let seen = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let store = database.open();
                    scope.spawn(move || {
                        for number in 0..EACH {
                            append(&store, event(&format!("{writer}-{number}"), 1));
                        }
                    })
                })
                .collect();
            let following = scope.spawn(|| {
                let (mut seen, mut last) = (Vec::new(), 0);
                loop {
                    // Before the look: what is committed by then must be found by it.
                    let was_over = is_over.load(Ordering::SeqCst);
                    for stored in reader.read(|t| t.events_after(last, 7, &ALL)).unwrap() {
                        assert!(stored.seq > last);
                        last = stored.seq;
                        seen.push(stored.event.kind);
                    }
                    if was_over && reader.read(|t| t.newest_event()).unwrap() == last {
                        return seen;
                    }
                }
            });
            for writer in writers {
                writer.join().unwrap();
            }
            is_over.store(true, Ordering::SeqCst);
            following.join().unwrap()
        });
        assert_eq!(seen.len(), WRITERS * EACH);
        for writer in 0..WRITERS {
            let own: Vec<_> = seen.iter().filter(|kind| kind.starts_with(&format!("{writer}-"))).collect();
            let written: Vec<_> = (0..EACH).map(|number| format!("{writer}-{number}")).collect();
            assert_eq!(own, written.iter().collect::<Vec<_>>());
        }
    });
}

#[test]
fn an_entry_is_written_with_the_change_it_records_or_not_at_all() {
    on_both(|database| {
        let store = with_worker(database, "web");
        let judged = judge(&store, "web");
        store.tx(|t| pause(t, "web", &judged, at(500))).unwrap();
        let of_web = EventFilter { worker: Some(&id("web")), kind: None };
        let events = store.read(|t| t.events_after(0, 9, &of_web)).unwrap();
        assert_eq!(events.len(), 1);
        assert_eq!((events[0].event.at, events[0].event.kind.as_str()), (at(500), "worker.sleep_intended"));
        let entry: Entry = serde_json::from_value(events[0].event.doc.clone()).unwrap();
        assert!(matches!(entry, Entry::SleepIntended { .. }));

        let refused = store.tx(|t| {
            t.append(event("never", 1));
            Err::<(), _>(StoreError::NoWorker(id("web")))
        });
        assert!(refused.is_err());
        assert_eq!(kinds(&store, 0).len(), 1);
    });
}

#[test]
fn entries_keep_their_order_and_every_character() {
    on_both(|database| {
        let store = database.open();
        let doc =
            json!({"text": "NUL \u{0}, quote \", newline \n, snowman ☃, \\u0000", "none": null, "n": 1.5});
        store
            .tx(|t| {
                for index in 0..20 {
                    t.append(NewEvent { doc: doc.clone(), ..event(&format!("k{index}"), index) });
                }
                Ok::<_, StoreError>(())
            })
            .unwrap();
        let events = store.read(|t| t.events_after(0, 100, &ALL)).unwrap();
        assert!(events.iter().enumerate().all(|(index, stored)| stored.event.kind == format!("k{index}")));
        assert!(events.iter().all(|stored| stored.event.doc == doc));
        let latest = store.read(|t| t.events_before(i64::MAX, 2, &ALL)).unwrap();
        assert_eq!(latest.iter().map(|e| e.event.kind.as_str()).collect::<Vec<_>>(), ["k19", "k18"]);
        let one = EventFilter { worker: None, kind: Some("k7") };
        assert_eq!(store.read(|t| t.events_after(0, 9, &one)).unwrap().len(), 1);
    });
}

#[test]
fn the_journal_is_pruned_by_age_in_batches_and_numbers_are_not_used_again() {
    on_both(|database| {
        let store = database.open();
        for secs in 0..10 {
            append(&store, event("old", secs));
        }
        let last = store.read(|t| t.newest_event()).unwrap();
        let epoch = store.read(|t| t.epoch()).unwrap();
        let resume = |seq| store.read(|t| t.resume_after(EventId { epoch, seq })).unwrap();
        assert_eq!(resume(2), Resume::After(2));
        let prune = || store.tx(|t| t.prune_events(at(5), 3)).unwrap();
        assert_eq!((prune(), prune(), prune()), (3, 2, 0));
        assert_eq!((resume(2), resume(last)), (Resume::Lost, Resume::After(last)));
        store.tx(|t| t.prune_events(at(100), 100)).unwrap();
        append(&database.open(), event("new", 1));
        assert!(store.read(|t| t.newest_event()).unwrap() > last);
    });
}

#[test]
fn a_sink_goes_on_where_it_was() {
    on_both(|database| {
        let store = database.open();
        assert_eq!(store.read(|t| t.sink_cursor("hook")).unwrap(), 0);
        for seq in [7, 5] {
            store.tx(|t| t.set_sink_cursor("hook", seq)).unwrap();
        }
        assert_eq!(database.open().read(|t| t.sink_cursor("hook")).unwrap(), 7);
    });
}

/// Fails when the copy is not marked (SQLite) or the database's identity not compared (PostgreSQL).
#[test]
fn a_restored_copy_begins_a_new_epoch() {
    on_both(|database| {
        let store = database.open();
        append(&store, event("before", 1));
        let other = Options { fresh_epoch: drowse_store::Epoch(0xbeef), ..options() };
        assert_eq!(database.open_with(&other).unwrap().read(|t| t.epoch()).unwrap(), EPOCH);

        let copy = match database {
            Database::Sqlite(folder) => {
                store.backup(&folder.path().join("copy.db")).unwrap();
                Store::open("sqlite://copy.db", folder.path(), &other).unwrap()
            }
            Database::Postgres { cluster, name } => {
                drop(store);
                let copy = format!("{name}_restored");
                let sql = format!("CREATE DATABASE {copy} TEMPLATE {name}");
                cluster.admin().batch_execute(&sql).unwrap();
                Store::open(&cluster.url(&copy), database.folder(), &other).unwrap()
            }
        };
        assert_eq!(copy.read(|t| t.epoch()).unwrap(), drowse_store::Epoch(0xbeef));
        assert_eq!(kinds(&copy, 0), ["before"]);
        let seen = EventId { epoch: EPOCH, seq: 1 };
        assert_eq!(copy.read(|t| t.resume_after(seen)).unwrap(), Resume::Lost);
        assert_eq!(database.open().read(|t| t.resume_after(seen)).unwrap(), Resume::After(1));
        copy.tx(|t| t.begin_epoch(drowse_store::Epoch(3))).unwrap();
        assert_eq!(copy.read(|t| t.epoch()).unwrap(), drowse_store::Epoch(3));
    });
}

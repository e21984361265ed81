//! A guest with hosts that say what they are told to.

use std::sync::Arc;

use drowse_wire::control::{Awake, EdgeCause, Standing};
use tokio::net::UnixListener;

use super::*;

/// A clock that is set by hand.
#[derive(Clone, Debug, Default)]
struct Hand(Arc<AtomicI64>);

impl Hand {
    fn set(&self, secs: i64) {
        self.0.store(Timestamp::from_secs(secs).as_micros(), Ordering::Release);
    }
}

fn web() -> WorkerId {
    WorkerId::new("web").unwrap()
}

fn guest(now: &Hand) -> Guest {
    let clock = now.clone();
    let now: Now = Arc::new(move || Timestamp::from_micros(clock.0.load(Ordering::Acquire)));
    let carried = vec![Carried { worker: web(), epoch: 7, count: 2 }];
    Guest::new("guest-0f".to_owned(), carried, Timestamp::from_secs(14), now)
}

/// The other end of one visit.
struct Host {
    hearing: Hearing,
    saying: Saying,
}

impl Host {
    async fn receive(listener: &UnixListener) -> Self {
        let (stream, _) = listener.accept().await.unwrap();
        let (hearing, saying) = lines::lines(stream);
        Self { hearing, saying }
    }

    async fn heard(&mut self) -> Word {
        self.hearing.next().await.unwrap().expect("it says something")
    }

    /// The next question.
    async fn asked(&mut self) -> (u64, Ask) {
        match self.heard().await {
            Word::Ask { id, ask } => (id, ask),
            other @ (Word::Cancel { .. } | Word::SawBytes { .. }) => panic!("no question: {other:?}"),
        }
    }

    async fn give(&mut self, id: u64, given: Given) {
        self.saying.say(&Reply::to(id, Ok(given))).await.unwrap();
    }

    /// Takes it in; what it carries.
    async fn takes_in(&mut self) -> Ask {
        let (id, ask) = self.asked().await;
        assert_eq!(ask, Ask::Begin { session: "guest-0f".to_owned() });
        self.give(id, Given::Done).await;
        let (id, carried) = self.asked().await;
        self.give(id, Given::Done).await;
        carried
    }
}

fn awake() -> Given {
    Given::Awake(Awake { boot: None })
}

#[tokio::test]
async fn what_was_told_and_what_was_asked_is_said_again_to_the_next_host() {
    let folder = tempfile::tempdir().unwrap();
    let (path, now) = (folder.path().join("guests"), Hand::default());
    let guest = guest(&now);
    let story = async {
        let listener = UnixListener::bind(&path).unwrap();
        let mut first = Host::receive(&listener).await;
        assert_eq!(first.takes_in().await, Ask::Carry { worker: web(), epoch: 7, count: 2 });
        let edge = Edge { epoch: 9, count: 1, cause: EdgeCause::Came };
        let telling = async { guest.connections(&web(), edge).await.unwrap() };
        let hearing = async {
            let (id, ask) = first.asked().await;
            assert_eq!(ask, Ask::Connections { worker: web(), edge });
            let standing = Standing { is_awake: true, boot: None, connection_idle: None };
            first.give(id, Given::Standing(standing)).await;
        };
        tokio::join!(telling, hearing);

        // It is gone in the middle of a question.
        let waking = guest.ask(Ask::Wake { worker: web() });
        let hearing = async {
            assert_eq!(first.asked().await.1, Ask::Wake { worker: web() });
            drop(first);
            let mut second = Host::receive(&listener).await;
            assert_eq!(second.takes_in().await, Ask::Carry { worker: web(), epoch: 9, count: 1 });
            let (id, ask) = second.asked().await;
            assert_eq!(ask, Ask::Wake { worker: web() });
            // Something else that nobody has asked for.
            second.give(id + 1_000, Given::Done).await;
            second.give(id, awake()).await;
            second
        };
        let (answer, mut second) = tokio::join!(waking, hearing);
        assert_eq!(answer, Ok(awake()));

        // Whoever does not want to know any more says so.
        let slept = guest.ask(Ask::Slept { worker: web(), is_falling: false });
        let id = tokio::select! {
            _ = slept => panic!("nobody has answered"),
            (id, _) = second.asked() => id,
        };
        assert_eq!(second.heard().await, Word::Cancel { id });
        second.saying.say(&Reply::End).await.unwrap();
        guest.is_to_end().await;
    };
    tokio::select! {
        () = guest.stay(&path) => {}
        () = story => {}
    }
}

#[tokio::test]
async fn what_holds_counts_from_the_question_and_ends_when_we_hang_up() {
    let folder = tempfile::tempdir().unwrap();
    let (path, now) = (folder.path().join("guests"), Hand::default());
    let guest = guest(&now);
    assert_eq!(guest.valid_until(), Timestamp::from_secs(14));
    let story = async {
        let listener = UnixListener::bind(&path).unwrap();
        let mut first = Host::receive(&listener).await;
        now.set(3);
        // Asked before, answered later.
        first.takes_in().await;
        guest.has_host.subscribe().wait_for(|has_host| *has_host).await.unwrap();
        let begun = guest.valid_until();
        assert!(begun <= Timestamp::from_secs(3) + GUEST_FOR, "{begun:?}");
        // A host that goes away takes nothing back.
        drop(first);
        let mut second = Host::receive(&listener).await;
        assert!(guest.valid_until() >= begun);
        second.takes_in().await;
        // One that speaks another language is left, and has to take us for gone.
        now.set(5);
        second.saying.say(&"burn").await.unwrap();
        let third = Host::receive(&listener).await;
        assert_eq!(guest.valid_until(), Timestamp::from_secs(5));
        drop(third);
    };
    tokio::select! {
        () = guest.stay(&path) => {}
        () = story => {}
    }
}

#[tokio::test(start_paused = true)]
async fn where_there_is_no_host_whoever_asks_hears_that_after_a_while() {
    let guest = guest(&Hand::default());
    let answer = guest.ask(Ask::Look { worker: web() }).await;
    assert!(matches!(answer, Err(Refused::Unavailable { .. })), "{answer:?}");
    assert!(guest.lock().open.is_empty());
    assert!(!guest.saw_bytes(&web()));
    guest.is_alone_for(Duration::from_mins(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_refused_promises_nothing_and_is_asked_for_again_soon() {
    let mut renewing = Renewing::new();
    let began = tokio::time::Instant::now();
    renewing.is_due().await;
    assert_eq!(began.elapsed(), RENEW_EVERY);
    renewing.asked = Some((3, Timestamp::from_secs(1)));
    assert_eq!(renewing.answered(4, true), None, "an answer to something else");
    assert_eq!(renewing.answered(3, false), Some(Timestamp::from_secs(1)));
    renewing.is_due().await;
    assert_eq!(began.elapsed(), RENEW_EVERY + RENEW_AGAIN);
}

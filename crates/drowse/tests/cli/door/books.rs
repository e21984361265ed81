//! What the journal says, past the API.

use drowse_core::id::WorkerId;
use drowse_store::{Epoch, EventFilter, Options, Store};

use super::super::up::running::Folder;

/// How often something of this type was journalled, about one worker or about all.
pub(super) fn count(folder: &Folder, kind: &str, worker: Option<&str>) -> usize {
    let options = Options { connections: 1, create: false, ..Options::new(Epoch(0)) };
    let store = Store::open("sqlite://drowse.db", &folder.data(), &options).expect("it is there");
    let worker = worker.map(|id| WorkerId::new(id).expect("a name"));
    let filter = EventFilter { worker: worker.as_ref(), kind: Some(kind) };
    store.read(|view| view.events_after(0, 1_000_000, &filter)).expect("it answers").len()
}

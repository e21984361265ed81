//! The policy that counts now: the layers of the file and the environment, and what was changed at run time.
//!
//! Read once for each epoch and then shared: a check of one worker resolves nothing that a check of another
//! with the same layers has resolved already.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use drowse_core::Timestamp;
use drowse_core::policy::exemption::{Exempt, Exemption};
use drowse_core::policy::{
    Key, Level, Policy, PolicyBook, PolicyLayer, Provenance, Selectors, Source, Value, Values,
};
use drowse_store::{PolicyValue, StoreError, StoredExemption, View};

/// What the file and the environment say.
#[derive(Clone, Debug, Default)]
pub struct FileLayers {
    /// Their layers.
    pub policy: PolicyBook,
    /// The exemptions of the file.
    pub exemptions: Vec<Exemption>,
}

/// The resolved settings of one worker.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// What counts.
    pub policy: Policy,
    /// Who said so.
    pub provenance: Provenance,
    /// The values as they were set.
    pub settings: BTreeMap<Key, Value>,
}

/// Everything that policy says, of one epoch.
#[derive(Debug)]
pub struct Book {
    epoch: u64,
    layers: PolicyBook,
    file: Arc<FileLayers>,
    /// What was set at run time, as it is stored.
    pub values: Vec<PolicyValue>,
    /// Exemptions that were granted at run time.
    pub granted: Vec<StoredExemption>,
    /// Workers that have a layer of their own; the others share.
    single: BTreeSet<String>,
    resolved: Mutex<HashMap<[Option<String>; 5], Arc<Resolved>>>,
}

impl Book {
    /// The book as it would be with other run-time values: to see whether a change is right before it is made.
    pub fn new(
        epoch: u64,
        file: &Arc<FileLayers>,
        values: Vec<PolicyValue>,
        granted: Vec<StoredExemption>,
    ) -> Self {
        let mut layers = file.policy.clone();
        for value in &values {
            // A value that an older program stored and this one does not understand says nothing.
            if let Some(layer) = layer_of(value) {
                layers.push(layer);
            }
        }
        let single = layers.layers().iter().filter(|layer| layer.level == Level::Worker);
        let single = single.filter_map(|layer| layer.name.clone()).collect();
        let file = Arc::clone(file);
        Self { epoch, layers, file, values, granted, single, resolved: Mutex::default() }
    }

    /// Which epoch of the policy this is.
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Every layer there is.
    pub const fn layers(&self) -> &PolicyBook {
        &self.layers
    }

    /// The exemptions of the file.
    pub fn file_exemptions(&self) -> &[Exemption] {
        &self.file.exemptions
    }

    pub(crate) const fn file(&self) -> &Arc<FileLayers> {
        &self.file
    }

    /// The settings of the worker with these attributes.
    pub fn of(&self, selectors: &Selectors) -> Arc<Resolved> {
        let Selectors { worker, region, kind, group, owner } = selectors.clone();
        let worker = self.single.contains(&worker).then_some(worker);
        let mut resolved = lock(&self.resolved);
        let entry = resolved.entry([worker, region, kind, group, owner]).or_insert_with(|| {
            let stack = self.layers.stack_for(selectors);
            let (policy, provenance) = stack.finish();
            Arc::new(Resolved { policy, provenance, settings: stack.set_values() })
        });
        Arc::clone(entry)
    }

    /// What the worker with these attributes is exempt from.
    pub fn exempt(&self, selectors: &Selectors, now: Timestamp) -> Exempt {
        let granted = self.granted.iter().map(|granted| &granted.exemption);
        Exempt::of(self.file.exemptions.iter().chain(granted), selectors, now)
    }
}

fn layer_of(value: &PolicyValue) -> Option<PolicyLayer> {
    let mut layer = PolicyLayer::new(value.level, value.name.as_deref(), Source::RunTime);
    layer.author = Some(value.author.clone());
    layer.values = read_value(&value.key, value.value.clone()).ok()?;
    Some(layer)
}

/// A value as it is written in JSON, read as one of its key.
pub fn read_value(key: &str, value: serde_json::Value) -> Result<BTreeMap<Key, Value>, serde_json::Error> {
    let table = serde_json::Map::from_iter([(key.to_owned(), value)]);
    serde_json::from_value::<Values>(table.into()).map(|values| values.0)
}

/// Where the book is kept.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    file: Arc<FileLayers>,
    book: Option<Arc<Book>>,
}

impl Policies {
    pub(crate) fn new(file: FileLayers) -> Self {
        Self { state: Mutex::new(State { file: Arc::new(file), book: None }) }
    }

    /// Another file counts from the next epoch on; whoever calls this moves the epoch in the same breath.
    pub(crate) fn replace_file(&self, file: FileLayers) {
        *lock(&self.state) = State { file: Arc::new(file), book: None };
    }

    /// The book of the epoch that `view` sees.
    ///
    /// Two readers of different views may ask in turns while the epoch moves: the newest book is kept, and the
    /// reader of an older view makes its own.
    pub(crate) fn book(&self, view: &View<'_>) -> Result<Arc<Book>, StoreError> {
        self.book_of(view, view.policy_epoch()?)
    }

    /// The same, when the epoch that `view` sees has been read already.
    pub(crate) fn book_of(&self, view: &View<'_>, epoch: u64) -> Result<Arc<Book>, StoreError> {
        let file = {
            let state = lock(&self.state);
            if let Some(book) = state.book.as_ref().filter(|book| book.epoch == epoch) {
                return Ok(Arc::clone(book));
            }
            Arc::clone(&state.file)
        };
        let values = view.policy_values()?;
        // One that cannot be read drops no other; it names nobody, else it would spare whom it names.
        let granted = view.exemptions()?.into_iter().filter_map(|granted| {
            granted.inspect_err(|error| tracing::error!(%error, "an exemption cannot be read")).ok()
        });
        let granted = granted.collect();
        let book = Arc::new(Book::new(epoch, &file, values, granted));
        let mut state = lock(&self.state);
        let is_newest = state.book.as_ref().is_none_or(|kept| kept.epoch < epoch);
        if is_newest && Arc::ptr_eq(&state.file, &file) {
            state.book = Some(Arc::clone(&book));
        }
        Ok(book)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

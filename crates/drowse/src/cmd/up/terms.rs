//! On what terms somebody comes through the front door, with what stands in files of its own.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use drowse_core::id::WorkerId;
use drowse_router::http::Page;
use drowse_router::route::{Robots, Rules, Sources, WAIT_FOR, Waiting, WakeToken};
use drowse_server::config::{self, Config};

/// The shortest secret that is worth the name.
const SHORTEST: usize = 16;

/// The terms of all workers.
#[derive(Clone, Debug)]
pub(in crate::cmd) struct Terms {
    /// Of those that have their own.
    own: HashMap<WorkerId, Arc<Rules>>,
    /// Of all others.
    common: Arc<Rules>,
}

impl Terms {
    /// Reads what stands in other files, relative to the folder that the configuration is in.
    pub(in crate::cmd) fn read(config: &Config, beside: &Path) -> anyhow::Result<Self> {
        let trusted_proxies = Sources::new(config.router.trusted_proxies.clone());
        let mut files = Files { beside, trusted_proxies, pages: HashMap::new() };
        let common = &config.router.terms;
        let common_rules = Arc::new(files.rules(common.clone())?);
        let mut own = HashMap::new();
        for worker in &config.workers {
            if worker.ways.terms != config::Terms::default() {
                let rules = files.rules(worker.ways.terms.clone().or(common));
                let rules = rules.with_context(|| format!("worker {}", worker.id))?;
                own.insert(worker.id.clone(), Arc::new(rules));
            }
        }
        Ok(Self { own, common: common_rules })
    }

    pub(super) fn of(&self, worker: &WorkerId) -> Arc<Rules> {
        Arc::clone(self.own.get(worker).unwrap_or(&self.common))
    }
}

struct Files<'a> {
    beside: &'a Path,
    /// Of all workers.
    trusted_proxies: Sources,
    /// A thousand workers with one page read it once.
    pages: HashMap<PathBuf, Arc<Page>>,
}

impl Files<'_> {
    fn rules(&mut self, terms: config::Terms) -> anyhow::Result<Rules> {
        let page = terms.waiting_page.map(|path| self.page(&path)).transpose()?;
        let wake_token = terms.wake_token_file.map(|path| self.token(&path)).transpose()?;
        let lower = |agents: Vec<String>| agents.iter().map(|agent| agent.to_lowercase()).collect();
        Ok(Rules {
            wait_for: terms.wait_for.unwrap_or(WAIT_FOR),
            may_wake: terms.wake_sources.map(Sources::new),
            wake_token,
            robots: Robots {
                sources: Sources::new(terms.robot_sources.unwrap_or_default()),
                agents: terms.robot_agents.map(lower).unwrap_or_default(),
                paths: terms.robot_paths.unwrap_or_default(),
            },
            trusted_proxies: self.trusted_proxies.clone(),
            waiting: match terms.waiting {
                Some(config::Waiting::Page) => Waiting::Page,
                Some(config::Waiting::Hold) => Waiting::Hold,
                Some(config::Waiting::Auto) | None => Waiting::Auto,
            },
            page: page.unwrap_or_default(),
        })
    }

    fn page(&mut self, path: &Path) -> anyhow::Result<Arc<Page>> {
        let path = self.beside.join(path);
        if let Some(page) = self.pages.get(&path) {
            return Ok(Arc::clone(page));
        }
        let shown = format!("waiting_page {}", path.display());
        let text = std::fs::read_to_string(&path).with_context(|| shown.clone())?;
        let page = Arc::new(Page::new(&text).context(shown)?);
        self.pages.insert(path, Arc::clone(&page));
        Ok(page)
    }

    fn token(&self, path: &Path) -> anyhow::Result<WakeToken> {
        let path = self.beside.join(path);
        let shown = format!("wake_token_file {}", path.display());
        let text = std::fs::read_to_string(&path).with_context(|| shown.clone())?;
        let token = text.trim();
        if token.len() < SHORTEST || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            bail!("{shown}: expected one word of at least {SHORTEST} letters and digits");
        }
        Ok(WakeToken(token.to_owned()))
    }
}

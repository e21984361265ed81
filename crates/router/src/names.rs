//! Which worker a name leads to.

use std::collections::HashMap;
use std::sync::Arc;

use drowse_core::host::{HostName, HostPattern};

use crate::route::Route;

/// Names, and where they lead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// One host each.
    exact: HashMap<String, Arc<Route>>,
    /// All hosts right below one.
    below: HashMap<String, Arc<Route>>,
    /// Whatever the name.
    any: Option<Arc<Route>>,
}

impl Names {
    /// Of two that are the same the last one counts; the configuration refuses them.
    pub fn new(routes: impl IntoIterator<Item = (HostPattern, Arc<Route>)>) -> Self {
        let mut names = Self::default();
        for (pattern, route) in routes {
            match pattern {
                HostPattern::Is(name) => names.exact.insert(name.as_str().to_owned(), route),
                HostPattern::Below(name) => names.below.insert(name.as_str().to_owned(), route),
            };
        }
        names
    }

    /// Where they lead.
    pub fn routes(&self) -> impl Iterator<Item = &Route> {
        self.exact.values().chain(self.below.values()).chain(&self.any).map(Arc::as_ref)
    }

    /// All to one worker, whatever the name.
    pub fn any(route: Arc<Route>) -> Self {
        Self { any: Some(route), ..Self::default() }
    }

    /// Where a name leads; one that is there itself before the star above it.
    pub(crate) fn find(&self, name: Option<&HostName>) -> Option<&Arc<Route>> {
        let named =
            name.and_then(|name| self.exact.get(name.as_str()).or_else(|| self.below.get(name.above()?)));
        named.or(self.any.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(worker: &str) -> Arc<Route> {
        let target = ([127, 0, 0, 1], 1).into();
        Arc::new(Route::to(worker.parse().unwrap(), target))
    }

    #[test]
    fn a_name_of_its_own_goes_before_the_star_above_it() {
        let names = Names::new([
            ("a.example.org".parse().unwrap(), route("own")),
            ("*.example.org".parse().unwrap(), route("star")),
        ]);
        let found = |name: &str| {
            let name = HostName::new(name).unwrap();
            names.find(Some(&name)).map(|route| route.worker.to_string())
        };
        assert_eq!(found("A.example.org").as_deref(), Some("own"));
        assert_eq!(found("b.example.org").as_deref(), Some("star"));
        assert_eq!(found("c.b.example.org"), None, "one label for the star");
        assert_eq!(found("example.org"), None);
        assert_eq!(names.find(None), None);
    }

    #[test]
    fn a_port_of_its_own_takes_every_name() {
        let names = Names::any(route("only"));
        assert!(names.find(None).is_some() && names.find(HostName::new("x").ok().as_ref()).is_some());
    }
}

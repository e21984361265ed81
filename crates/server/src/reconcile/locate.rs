//! Where a worker answers whose address its driver knows: it may be another one after each start.

use std::net::SocketAddr;
use std::sync::Arc;

use drowse_core::id::WorkerId;
use drowse_store::Lane;
use serde_json::json;

use crate::fleet::ControlError;
use crate::hands::LOOK_WITHIN;
use crate::shared::Shared;
use crate::spec::WorkerSpec;

impl Shared {
    /// Asks the driver, and has the door lead there. The spec as it is now, if that is not as it was.
    pub(super) async fn locate(self: &Arc<Self>, id: &WorkerId, spec: &WorkerSpec) -> Option<WorkerSpec> {
        if !spec.is_located() {
            return None;
        }
        let mut now = spec.clone();
        now.target = self.place(id, spec, spec.target_port).await.or(spec.target);
        now.tls_target = self.place(id, spec, spec.tls_target_port).await.or(spec.tls_target);
        if now == *spec {
            return None;
        }
        let (before, wanted) = (spec.clone(), now.clone());
        let written = self.change("locate", Lane::Ordinary, id, move |change| {
            // Somebody configured it anew meanwhile: the next look finds where that one answers.
            if change.locked.record().spec != json!(before) {
                return Ok(false);
            }
            let site = change.locked.record().site.clone();
            change.locked.reconfigure(&site, &json!(wanted))?;
            Ok::<_, ControlError>(true)
        });
        // Failed: it is tried again with the next look, and whoever waits is led there all the same.
        if matches!(written.await, Ok((true, _))) {
            self.notices.books_changed();
        }
        Some(now)
    }

    async fn place(&self, id: &WorkerId, spec: &WorkerSpec, port: Option<u16>) -> Option<SocketAddr> {
        let driver = self.hands.of(id, spec).await.ok()?;
        self.hands.call("locate", driver.locate(id, port?, LOOK_WITHIN)).await.ok().flatten()
    }
}

//! The front door with real programs on both sides, while the worker is asleep.

#[path = "door/browser.rs"]
mod browser;
#[path = "door/handover.rs"]
mod handover;
#[path = "door/http.rs"]
mod http;
#[path = "door/nginx.rs"]
mod nginx;
#[path = "door/tls.rs"]
mod tls;

//! The front door with real programs on both sides, while the worker is asleep.

#[path = "door/asleep.rs"]
mod asleep;
#[path = "door/books.rs"]
mod books;
#[path = "door/browser.rs"]
mod browser;
#[path = "door/carried.rs"]
mod carried;
#[path = "door/crowd.rs"]
mod crowd;
#[path = "door/drain.rs"]
mod drain;
#[path = "door/echo.rs"]
mod echo;
#[path = "door/files.rs"]
mod files;
#[path = "door/handover.rs"]
mod handover;
#[path = "door/hostile.rs"]
mod hostile;
#[path = "door/http.rs"]
mod http;
#[path = "door/nginx.rs"]
mod nginx;
#[path = "door/programs.rs"]
mod programs;
#[path = "door/race.rs"]
mod race;
#[path = "door/silence.rs"]
mod silence;
#[path = "door/tls.rs"]
mod tls;

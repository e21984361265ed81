//! The commands, one file each. To add one: a file, a variant with its arguments, an arm in [`run`].

mod act;
mod backup;
mod brake;
mod check_config;
mod completions;
mod demo_worker;
mod detect;
mod disable;
mod doctor;
mod drain;
mod enable;
mod events;
mod exempt;
mod explain;
mod forget;
mod idle_detection;
mod login;
mod man;
mod pause;
mod policy;
mod ps;
mod reference;
mod replay;
mod resume;
mod show;
mod snooze;
mod stop;
mod terminate;
mod thaw;
mod token;
mod up;

use std::process::ExitCode;

use clap::Subcommand;

/// The hidden command that becomes a worker's own.
pub(crate) const EXEC: &str = "__exec";

/// What `drowse` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Up(up::Args),
    Ps(ps::Args),
    Show(show::Args),
    Explain(explain::Args),
    Pause(pause::Args),
    Resume(resume::Args),
    Snooze(snooze::Args),
    Stop(stop::Args),
    Enable(enable::Args),
    Disable(disable::Args),
    Drain(drain::Args),
    Terminate(terminate::Args),
    Forget(forget::Args),
    Detect(detect::Args),
    Policy(policy::Args),
    Events(events::Args),
    Exempt(exempt::Args),
    Brake(brake::Args),
    Token(token::Args),
    Login(login::Args),
    Backup(backup::Args),
    CheckConfig(check_config::Args),
    Replay(replay::Args),
    Doctor(doctor::Args),
    Thaw(thaw::Args),
    Completions(completions::Args),
    Man(man::Args),
    #[command(name = "__reference", hide = true)]
    Reference(reference::Args),
    #[command(name = "__demo-worker", hide = true)]
    DemoWorker(demo_worker::Args),
}

/// Runs a command. An error is something that kept it from doing its work; a "no" that is its work, such as
/// an invalid file, is an exit code.
pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Up(args) => up::run(args),
        Command::Ps(args) => ps::run(args),
        Command::Show(args) => show::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Pause(args) => pause::run(args),
        Command::Resume(args) => resume::run(args),
        Command::Snooze(args) => snooze::run(args),
        Command::Stop(args) => stop::run(args),
        Command::Enable(args) => enable::run(args),
        Command::Disable(args) => disable::run(args),
        Command::Drain(args) => drain::run(args),
        Command::Terminate(args) => terminate::run(args),
        Command::Forget(args) => forget::run(args),
        Command::Detect(args) => detect::run(args),
        Command::Policy(args) => policy::run(args),
        Command::Events(args) => events::run(args),
        Command::Exempt(args) => exempt::run(args),
        Command::Brake(args) => brake::run(args),
        Command::Token(args) => token::run(args),
        Command::Login(args) => login::run(args),
        Command::Backup(args) => backup::run(args),
        Command::CheckConfig(args) => check_config::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Thaw(args) => thaw::run(args),
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => man::run(args),
        Command::Reference(args) => reference::run(args),
        Command::DemoWorker(args) => demo_worker::run(args),
    }
}

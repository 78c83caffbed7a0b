//! Schedules: how late they fire, how many fire, what a fire costs, how fast they come back and are
//! made. Each phase stands beside what it is measured against, in the same run.

mod conditions;
mod cost;
mod create;
mod doers;
mod done;
mod fires;
mod growth;
mod large;
mod lateness;
mod peers;
mod place;
mod plan;
mod raw;
mod recovery;
mod steps;

use std::future::Future;
use std::path::PathBuf;

use clap::ValueEnum;

use self::peers::Peers;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// What to measure; may be given several times [default: all]
    #[arg(long, value_enum)]
    phase: Vec<Phase>,
    /// Schedules, instead of the number that the phase has by default
    #[arg(long)]
    schedules: Option<usize>,
    /// How long lateness, fires and growth are measured
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Slots that come due in a second of `fires` [default: a fifth more than can be decided]
    #[arg(long)]
    rate: Option<f64>,
    /// How often `done` and `recovery` are measured
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Installs the peers below `target/` and measures them too; needs npm and its registry
    #[arg(long)]
    peers: bool,
    /// Where to write [default: a temporary directory]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// SQL for the raw engine of `fires` before it writes once more, to see what a setting or an
    /// index is worth; may be given several times
    #[arg(long)]
    raw_sql: Vec<String>,
    /// Where the large store of `growth` and `recovery` is kept for another run
    #[arg(long)]
    large: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Phase {
    /// From the instant of a slot to its handler, beside Restate
    Lateness,
    /// Slots decided and runs queued in a second, beside the raw engine
    Fires,
    /// Runs from due to done in a second, beside job queues
    Done,
    /// What a fire costs among a million schedules, beside a thousand
    Growth,
    /// From a start after a kill to the first slot, with a million schedules
    Recovery,
    /// Schedules added in a second
    Create,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let peers = options.peers.then(Peers::install).transpose()?;
    let peers = peers.as_ref();
    let phases = match options.phase.as_slice() {
        [] => Phase::value_variants(),
        chosen => chosen,
    };
    let mut large = large::Large::new(options.large.clone());
    for phase in phases {
        match phase {
            Phase::Lateness => lateness::run(options, peers)?,
            Phase::Fires => fires::run(options)?,
            Phase::Done => done::run(options, peers)?,
            Phase::Growth => growth::run(options, &mut large)?,
            Phase::Recovery => recovery::run(options, &mut large)?,
            Phase::Create => create::run(options)?,
        }
    }
    Ok(())
}

impl Options {
    fn dir(&self) -> PathBuf {
        self.dir.clone().unwrap_or_else(std::env::temp_dir)
    }

    fn schedules(&self, default: usize) -> usize {
        self.schedules.unwrap_or(default)
    }
}

/// Carries out a phase as the daemon of a machine with two cores would.
fn block_on<T>(phase: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(phase)
}

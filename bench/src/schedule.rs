//! Schedules: lateness, rate and cost of fires, recovery after a kill, and creation. Each phase also measures its baseline.

mod backends;
mod conditions;
mod cost;
mod create;
mod decisions;
mod done;
mod fires;
mod growth;
mod instance;
mod large_store;
mod lateness;
mod peers;
mod raw;
mod recovery;
mod workload;

use std::future::Future;
use std::path::PathBuf;

use clap::ValueEnum;

use self::peers::Peers;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// What to measure; may be repeated [default: all]
    #[arg(long, value_enum)]
    phase: Vec<Phase>,
    /// Number of schedules [default: depends on the phase]
    #[arg(long)]
    schedules: Option<usize>,
    /// Duration of `lateness`, `fires` and `growth`
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Slots due per second in `fires` [default: 20 % more than can be decided]
    #[arg(long)]
    rate: Option<f64>,
    /// Rounds of `done` and `recovery`
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Also install the peers below `target/` and measure them; needs npm and its registry
    #[arg(long)]
    peers: bool,
    /// Directory to write to [default: a temporary directory]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Run the raw database of `fires` once more after this SQL, to measure a setting or an index; may be repeated
    #[arg(long)]
    raw_sql: Vec<String>,
    /// Directory that keeps the large store of `growth` and `recovery` for the next time
    #[arg(long)]
    large: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Phase {
    /// From the time of a slot to its handler, compared with Restate
    Lateness,
    /// Slots decided and runs queued per second, compared with the raw database
    Fires,
    /// Runs from due to done per second, compared with job queues
    Done,
    /// The cost of a fire among a million schedules, compared with a thousand
    Growth,
    /// From a start after a kill to the first slot, with a million schedules
    Recovery,
    /// Schedules added per second
    Create,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let peers = options.peers.then(Peers::install).transpose()?;
    let peers = peers.as_ref();
    let phases = match options.phase.as_slice() {
        [] => Phase::value_variants(),
        chosen => chosen,
    };
    let mut large = large_store::LargeStore::new(options.large.clone());
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

/// Runs a phase like the daemon on a machine with two cores.
fn block_on<T>(phase: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(phase)
}

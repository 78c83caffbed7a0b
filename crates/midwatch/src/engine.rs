//! Opens the installation in this process, for the daemon and for a command that runs without one.

use std::sync::Arc;

use agents::{AgentBackend, Backends, EnvironmentOf, Http};
use api::Error;
use redact::Redactor;
use runtime::{Components, ConfigReader, ConfiguredSecrets, Engine, OUTPUTS_FOLDER, SystemClock};

use crate::config::{Config, Loaded};
use crate::context::Context;
use crate::secret::Keyring;
use crate::storage::Storage;
use crate::tools::McpTools;

/// The backend that runs the attempts of this installation. It sends no request to the daemon's own port.
pub(crate) fn agent_backend(
    context: &Context,
    environment_of: EnvironmentOf,
    redactor: Arc<Redactor>,
    own_port: Option<u16>,
) -> Arc<dyn AgentBackend> {
    let environment = context.environment.clone();
    let keyring = Arc::new(Keyring::new(environment.clone(), environment_of, redactor));
    let outputs = context.directory.path().join(OUTPUTS_FOLDER);
    let http = Http::new().excluding_own_port(own_port);
    Arc::new(Backends::new(outputs, environment, keyring, http, environment_of))
}

/// What differs between a daemon and a command that opens the installation itself.
#[derive(Debug)]
pub(crate) struct Surroundings {
    pub(crate) backend: Arc<dyn AgentBackend>,
    /// The base URL of the pages for people.
    pub(crate) http_url: Option<String>,
    pub(crate) config_reader: Option<Arc<dyn ConfigReader>>,
}

/// Opens the installation; the caller holds the directory's lock.
pub(crate) async fn open_engine(
    context: &Context,
    loaded: &Loaded,
    surroundings: Surroundings,
) -> Result<Engine, Error> {
    let (settings, config) = (context.settings(&loaded.config), context.reloadable_config(loaded)?);
    let storage = Storage::of(context, &loaded.config)?;
    let store = storage.open(&context.directory).await?;
    let Surroundings { backend, http_url, config_reader } = surroundings;
    let components = Components {
        store,
        clock: Arc::new(SystemClock),
        backend,
        tools: Arc::new(McpTools),
        http_url,
        secrets: Some(configured_secrets(context, &loaded.config)),
        config_reader,
    };
    Engine::open(components, settings, config).await
}

/// The secrets that the configuration refers to, and a reader for those of agents.
fn configured_secrets(context: &Context, config: &Config) -> ConfiguredSecrets {
    let keys = [("store.password", &config.store.password), ("notice.token", &config.notice.token)];
    let keys = keys.into_iter().filter_map(|(key, secret)| Some((key, secret.clone()?)));
    // Only hashes of these secrets are compared, so no message says whose environment it is.
    let environment = context.environment.clone();
    let secrets = Keyring::new(environment, EnvironmentOf::Command, Arc::new(Redactor::new()));
    ConfiguredSecrets { keys: keys.collect(), secrets: Arc::new(secrets) }
}

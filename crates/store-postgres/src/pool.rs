//! The pool of connections for readers.

use deadpool::managed::{self, Metrics, RecycleError, RecycleResult};
use deadpool_postgres::ClientWrapper;
use store::Error;

use crate::connect::connect_client;
use crate::target::Target;

/// The most connections in the pool.
const READERS_MAX: usize = 8;

pub(crate) type Pool = managed::Pool<Readers>;
pub(crate) type PooledClient = managed::Object<Readers>;

/// Opens the connections of a pool.
#[derive(Debug)]
pub(crate) struct Readers(Target);

pub(crate) fn open_pool(target: Target) -> Result<Pool, Error> {
    let pool = Pool::builder(Readers(target)).max_size(READERS_MAX).build();
    pool.map_err(|error| Error::Failed(error.to_string()))
}

impl managed::Manager for Readers {
    type Type = ClientWrapper;
    type Error = Error;

    async fn create(&self) -> Result<ClientWrapper, Error> {
        let (client, driver) = connect_client(&self.0).await?;
        Ok(ClientWrapper::new(client, driver))
    }

    async fn recycle(&self, client: &mut ClientWrapper, _: &Metrics) -> RecycleResult<Error> {
        match client.is_closed() {
            true => Err(RecycleError::message("the connection is closed")),
            false => Ok(()),
        }
    }
}

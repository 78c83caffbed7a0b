//! A server with the tools, resources and prompts that the official suite needs, and nothing of Midwatch behind it.
//!
//! It uses the same stdio and HTTP transports as the real server. The suite prescribes its texts.
#![expect(deprecated, reason = "the suite tests logging in the earlier era")]

mod input_required;
mod prompts;
mod resources;
mod tools;

use std::sync::Arc;

use api::wire::Secret;
use api::{Call, Code, Error, Handle, Response, ToolReport};
use futures::future::{BoxFuture, FutureExt, ready};
use gateway::{
    Authenticated, ConnectionAddresses, HttpAuthenticator, PeerFinder, PeerProcess, Services,
};
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, ErrorData,
    GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::select;
use tokio::sync::watch;

/// The server of one client.
#[derive(Clone, Debug)]
struct Fixture {
    changes: Arc<Changes>,
    /// List changes since this client connected.
    tools: watch::Receiver<()>,
    prompts: watch::Receiver<()>,
}

/// Notifies all clients that a list has changed.
#[derive(Debug, Default)]
struct Changes {
    tools: watch::Sender<()>,
    prompts: watch::Sender<()>,
}

/// Accepts any token.
#[derive(Debug)]
struct AcceptAll;

/// Serves over HTTP, and prints the URL.
#[expect(clippy::print_stdout, reason = "the parent process reads the URL")]
pub(crate) async fn serve_http() -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/mcp", listener.local_addr()?);
    let changes = Arc::<Changes>::default();
    let (_stop, stopped) = watch::channel(false);
    let services = Services {
        authenticator: Arc::new(AcceptAll),
        api: None,
        devices: None,
        metrics: None,
        peers: Arc::new(AcceptAll),
    };
    gateway::serve(listener, services, move || Fixture::new(&changes), stopped).await;
    Ok(())
}

/// Serves on standard input and output.
pub(crate) async fn serve_stdio() -> anyhow::Result<()> {
    let (input, output) = mcp::stdio_pipes();
    let server = Fixture::new(&Arc::default());
    Ok(mcp::serve_stdio(server, tokio::io::BufReader::new(input), output).await?)
}

impl Fixture {
    fn new(changes: &Arc<Changes>) -> Fixture {
        let (tools, prompts) = (changes.tools.subscribe(), changes.prompts.subscribe());
        Fixture { changes: Arc::clone(changes), tools, prompts }
    }
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_completions()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("fixture", "1"))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all()?))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::all().ok()?.into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match params.name.as_ref() {
            "test_trigger_tool_change" => self.changes.tools.send_replace(()),
            "test_trigger_prompt_change" => self.changes.prompts.send_replace(()),
            name if name.starts_with(input_required::PREFIX) => {
                return input_required::call(&params, &context);
            }
            _ => {}
        }
        tools::call(params, context).await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        complete_result(json!({ "prompts": prompts::all() }))
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&params)
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        complete_result(
            json!({ "completion": { "values": ["test", "testing"], "total": 2, "hasMore": false } }),
        )
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        complete_result(json!({ "resources": resources::all() }))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        complete_result(json!({ "resourceTemplates": resources::templates() }))
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&params.uri).map(Into::into)
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let (mut tools, mut prompts) = (self.tools.clone(), self.prompts.clone());
        let sink = context.sink();
        loop {
            // The sink refuses notifications that the client did not subscribe to.
            let _ = select! {
                Ok(()) = tools.changed() => sink.notify_tool_list_changed().await,
                Ok(()) = prompts.changed() => sink.notify_prompt_list_changed().await,
                () = context.cancelled() => return Ok(()),
            };
        }
    }
}

impl HttpAuthenticator for AcceptAll {
    fn authenticate(&self, Secret(name): Secret) -> BoxFuture<'_, Result<Authenticated, Error>> {
        ready(Ok(Authenticated { name, handle: Arc::new(AcceptAll), now_us: 0 })).boxed()
    }

    fn authenticate_person(
        &self,
        token: Secret,
        _: ConnectionAddresses,
    ) -> BoxFuture<'_, Result<Authenticated, Error>> {
        self.authenticate(token)
    }
}

impl PeerFinder for AcceptAll {
    fn find_peer(&self, _: ConnectionAddresses) -> BoxFuture<'_, PeerProcess> {
        ready(PeerProcess::Unknown).boxed()
    }
}

impl Handle for AcceptAll {
    fn call(&self, _: Call) -> BoxFuture<'_, Result<Response, Error>> {
        ready(Err(Error::new(Code::NotFound, "the fixture handles no requests"))).boxed()
    }

    fn report(&self, _: ToolReport) -> BoxFuture<'_, Result<(), Error>> {
        ready(Ok(())).boxed()
    }
}

/// Parses a complete result. The SDK removes `resultType` for clients that do not know it.
fn complete_result<T: DeserializeOwned>(mut value: Value) -> Result<T, ErrorData> {
    if let Value::Object(fields) = &mut value {
        fields.insert("resultType".to_owned(), json!("complete"));
    }
    from_json(value)
}

/// Parses JSON to a type of the SDK.
fn from_json<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

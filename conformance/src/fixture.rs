//! A server with the tools, resources and prompts that the official suite asks for, and nothing of the watch.
//!
//! The suite tests how a server speaks by what it says, so it needs one that says certain things. This one is
//! reached over the same lines and the same HTTP as the real one. What it says is written as the suite writes it.
#![expect(deprecated, reason = "the suite asks for logging in the earlier era")]

mod prompts;
mod resources;
mod rounds;
mod tools;

use std::sync::Arc;

use api::wire::Secret;
use api::{Answer, Call, Code, Error, Handle};
use futures::future::{BoxFuture, FutureExt, ready};
use gateway::{Door, Ends, Guest};
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

/// What one client meets.
#[derive(Clone, Debug)]
struct Fixture {
    changes: Arc<Changes>,
    /// What has changed since this client came.
    tools: watch::Receiver<()>,
    prompts: watch::Receiver<()>,
}

/// Told when a list is said to have changed.
#[derive(Debug, Default)]
struct Changes {
    tools: watch::Sender<()>,
    prompts: watch::Sender<()>,
}

/// Lets everybody in who has something to show.
#[derive(Debug)]
struct Open;

/// Over HTTP, at a port that it prints.
#[expect(clippy::print_stdout, reason = "whoever started it reads where it is")]
pub(crate) async fn serve_http() -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/mcp", listener.local_addr()?);
    let changes = Arc::<Changes>::default();
    let (_keep, stopped) = watch::channel(false);
    gateway::serve(listener, Arc::new(Open), move || Fixture::new(&changes), stopped).await;
    Ok(())
}

/// On standard input and output.
pub(crate) async fn serve_stdio() -> anyhow::Result<()> {
    let (input, output) = mcp::pipes();
    let server = Fixture::new(&Arc::default());
    Ok(mcp::serve(server, tokio::io::BufReader::new(input), output).await?)
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
        asked: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match asked.name.as_ref() {
            "test_trigger_tool_change" => self.changes.tools.send_replace(()),
            "test_trigger_prompt_change" => self.changes.prompts.send_replace(()),
            name if name.starts_with(rounds::PREFIX) => return rounds::call(&asked, &context),
            _ => {}
        }
        tools::call(asked, context).await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        result(json!({ "prompts": prompts::all() }))
    }

    async fn get_prompt(
        &self,
        asked: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&asked)
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        result(
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
        result(json!({ "resources": resources::all() }))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        result(json!({ "resourceTemplates": resources::templates() }))
    }

    async fn read_resource(
        &self,
        asked: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&asked.uri).map(Into::into)
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
            // The sink sends nothing that was not asked for, and says so; that is no matter here.
            let _ = select! {
                Ok(()) = tools.changed() => sink.notify_tool_list_changed().await,
                Ok(()) = prompts.changed() => sink.notify_prompt_list_changed().await,
                () = context.cancelled() => return Ok(()),
            };
        }
    }
}

impl Door for Open {
    fn admit(&self, Secret(name): Secret) -> BoxFuture<'_, Result<Guest, Error>> {
        ready(Ok(Guest { name, handle: Arc::new(Open) })).boxed()
    }

    fn receive(&self, token: Secret, _: Ends) -> BoxFuture<'_, Result<Guest, Error>> {
        self.admit(token)
    }
}

impl Handle for Open {
    fn call(&self, _: Call) -> BoxFuture<'_, Result<Answer, Error>> {
        ready(Err(Error::new(Code::NotFound, "there is no watch behind the fixture"))).boxed()
    }
}

/// A result that is written as JSON. It says that it is one; the SDK keeps that from those who do not know it.
fn result<T: DeserializeOwned>(mut value: Value) -> Result<T, ErrorData> {
    if let Value::Object(fields) = &mut value {
        fields.insert("resultType".to_owned(), json!("complete"));
    }
    of(value)
}

/// What is written as JSON, as the SDK has it.
fn of<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value)
        .map_err(|wrong| ErrorData::internal_error(wrong.to_string(), None))
}

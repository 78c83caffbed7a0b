//! The server: the protocol on one side, a handle on the other.

use std::fmt;
use std::sync::Arc;

use api::{Handle, ToolMisuse};
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
    CustomRequest, CustomResult, ErrorCode, ErrorData, GetPromptRequestParams, GetPromptResponse,
    Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter,
    Tool as Described, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use tokio::sync::Semaphore;
use tracing::debug;

use crate::human::{Summons, is_modern};
use crate::instructions::instructions;
use crate::message::brief;
use crate::page::page;
use crate::resources::Subscriptions;
use crate::tool::Through;
use crate::toolset::Selection;
use crate::worded::Worded;
use crate::{completion, progress, prompts, resources};

/// How long a client may keep a list of tools, in milliseconds. It changes with the program alone.
const LIST_TTL_MS: u64 = 300_000;

/// Requests of one client that listen at once. Each is open for as long as it wants.
const LISTENING_MAX: usize = 16;

/// Methods that have parameters of their own, in both eras.
const METHODS: [&str; 5] =
    ["completion/complete", "prompts/get", "resources/read", "tools/call", "tools/list"];
/// In the earlier one.
const LEGACY_METHODS: [&str; 3] = ["initialize", "resources/subscribe", "resources/unsubscribe"];
/// In the later one.
const MODERN_METHODS: [&str; 1] = ["subscriptions/listen"];

/// Serves one client, or each of many, on behalf of a principal.
#[derive(Clone)]
pub struct Server {
    principal: Principal,
    selection: Arc<Selection>,
    version: &'static str,
    subscriptions: Subscriptions,
    listening: Arc<Semaphore>,
}

/// For whom a request is made.
#[derive(Clone)]
enum Principal {
    /// The same one always.
    Of(Arc<dyn Handle>),
    /// The one that each request carries.
    OfRequest,
}

impl Server {
    /// A server whose requests all go to one handle.
    pub fn new(handle: Arc<dyn Handle>, selection: Selection, version: &'static str) -> Server {
        Server::of(Principal::Of(handle), selection, version)
    }

    /// One whose requests each carry a handle, among what came with them over HTTP.
    pub fn of_requests(selection: Selection, version: &'static str) -> Server {
        Server::of(Principal::OfRequest, selection, version)
    }

    fn of(principal: Principal, selection: Selection, version: &'static str) -> Server {
        let (selection, subscriptions) = (Arc::new(selection), Subscriptions::default());
        let listening = Arc::new(Semaphore::new(LISTENING_MAX));
        Server { principal, selection, version, subscriptions, listening }
    }

    fn handle(&self, context: &RequestContext<RoleServer>) -> Result<Arc<dyn Handle>, ErrorData> {
        let carried = || {
            let head = context.extensions.get::<http::request::Parts>()?;
            head.extensions.get::<Arc<dyn Handle>>()
        };
        let handle = match &self.principal {
            Principal::Of(handle) => Some(handle),
            Principal::OfRequest => carried(),
        };
        let nobody = || ErrorData::internal_error("nobody was let in with this request", None);
        let handle = Arc::clone(handle.ok_or_else(nobody)?);
        Ok(Arc::new(Worded::new(handle, Arc::clone(&self.selection))))
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_completions()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("midwatch", self.version))
            .with_instructions(instructions(&self.selection))
    }

    async fn list_tools(
        &self,
        asked: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.selection.tools().map(|tool| tool.described()).collect();
        let (tools, next) = page(tools, asked, |tool: &Described| &tool.name)?;
        let mut listed = ListToolsResult::with_all_items(tools)
            .with_ttl_ms(LIST_TTL_MS)
            .with_cache_scope(CacheScope::Private);
        listed.next_cursor = next;
        Ok(listed)
    }

    fn get_tool(&self, name: &str) -> Option<Described> {
        self.selection.find(name).map(|tool| tool.described())
    }

    /// Giving up on an answer takes nothing back: what was asked is carried out to its end.
    async fn call_tool(
        &self,
        asked: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.selection.find(&asked.name) else {
            let what = format!("there is no tool `{}`; tools/list shows them", brief(&asked.name));
            let missing = asked.name.into_owned();
            // The log says who has tried; whoever called learns why anyway.
            let handle = self.handle(&context)?;
            let _ = api::ask(&*handle, ToolMisuse { missing }).await;
            return Err(ErrorData::invalid_params(what, None));
        };
        let handle = self.handle(&context)?;
        let through = Through::new(&*handle, tool, &self.selection, &context.meta.0.0);
        let call = tool.call(&through, asked.arguments.unwrap_or_default());
        let answer = progress::shown(&context, call).await;
        match &answer {
            Err(error) => debug!(tool = tool.name, code = error.code.name(), "a call was refused"),
            Ok(answer) if tool.calls_human => {
                let responses = asked.input_responses.as_ref();
                if let Some(summons) = Summons::of(answer)
                    && let Some(first) = summons.show(&context, responses).await
                {
                    return Ok(first.into());
                }
            }
            Ok(_) => {}
        }
        Ok(tool.toolset.dialect().result(answer).into())
    }

    /// What is of no known shape: a method that nobody knows, or one with the wrong parameters.
    async fn on_custom_request(
        &self,
        asked: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = brief(&asked.method);
        let of_era = if is_modern(&context) { &MODERN_METHODS[..] } else { &LEGACY_METHODS[..] };
        Err(match METHODS.iter().chain(of_era).any(|known| *known == method) {
            true => {
                ErrorData::invalid_params(format!("the parameters are none of `{method}`"), None)
            }
            false => {
                ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no `{method}`"), None)
            }
        })
    }

    async fn list_prompts(
        &self,
        asked: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let (items, next) = page(prompts::all(&self.selection), asked, |item| &item.name)?;
        let mut listed = ListPromptsResult::with_all_items(items);
        listed.next_cursor = next;
        Ok(listed)
    }

    async fn get_prompt(
        &self,
        asked: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&self.selection, &asked.name, asked.arguments.unwrap_or_default())
            .map(Into::into)
    }

    async fn complete(
        &self,
        asked: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let handle = self.handle(&context)?;
        completion::complete(&*handle, &asked).await
    }

    async fn list_resources(
        &self,
        asked: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let (items, next) = page(resources::fixed(), asked, |item| &item.uri)?;
        let mut listed = ListResourcesResult::with_all_items(items);
        listed.next_cursor = next;
        Ok(listed)
    }

    async fn list_resource_templates(
        &self,
        asked: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let (items, next) = page(resources::templates(), asked, |item| &item.uri_template)?;
        let mut listed = ListResourceTemplatesResult::with_all_items(items);
        listed.next_cursor = next;
        Ok(listed)
    }

    async fn read_resource(
        &self,
        asked: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let handle = self.handle(&context)?;
        resources::read(&*handle, &asked.uri).await.map(Into::into)
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let asked = requested.resource_subscriptions.iter().flatten();
        let known = asked.filter(|uri| resources::is_known(uri)).cloned();
        Some(SubscriptionFilter::builder().resource_subscriptions(known).build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let handle = self.handle(context.request_context())?;
        let Ok(_listening) = self.listening.try_acquire() else {
            let what = format!("{LISTENING_MAX} requests listen already, and there can be no more");
            return Err(ErrorData::invalid_request(what, None));
        };
        let asked = context.requested().resource_subscriptions.iter().flatten();
        let uris: Vec<String> = asked.cloned().collect();
        resources::check(&*handle, &uris).await?;
        let sink = context.sink().clone();
        // They were acknowledged before it was known where the log ends.
        let told = resources::tell(&*handle, &uris, None, |uri| {
            let sink = sink.clone();
            async move { sink.notify_resource_updated(uri).await.is_ok() }
        });
        tokio::select! {
            told = told => told.map_err(|error| resources::ended(&error)),
            () = context.cancelled() => Ok(()),
        }
    }

    async fn subscribe(
        &self,
        asked: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let handle = self.handle(&context)?;
        resources::read(&*handle, &asked.uri).await?;
        let after = resources::place(&*handle).await.map_err(|error| resources::ended(&error))?;
        self.subscriptions.add(handle, asked.uri, after, context.peer)
    }

    async fn unsubscribe(
        &self,
        asked: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscriptions.remove(&asked.uri);
        Ok(())
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Server({:?})", self.selection)
    }
}

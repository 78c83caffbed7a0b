//! The MCP server: translates requests of the protocol to calls of a handle.

use std::fmt;
use std::sync::Arc;

use api::{Handle, ToolReport, nearest};
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
    CustomRequest, CustomResult, ErrorCode, ErrorData, GetPromptRequestParams, GetPromptResponse,
    Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter,
    Tool as ToolDefinition, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use tokio::sync::Semaphore;
use tracing::{debug, warn};

use crate::elicitation::{ApprovalLink, is_modern};
use crate::instructions::instructions;
use crate::message::abbreviate;
use crate::model_hints::{ModelHints, for_model};
use crate::pagination::paginate;
use crate::resources::Subscriptions;
use crate::selection::Selection;
use crate::tool::ToolContext;
use crate::{completion, progress, prompts, resources, tools};

/// How long a client may cache the list of tools, in milliseconds. It only changes with a new version.
const LIST_TTL_MS: u64 = 300_000;

/// Maximum number of concurrent `subscriptions/listen` requests of one client. They have no time limit.
const LISTENING_MAX: usize = 16;

/// Methods with parameters, in both eras.
const METHODS: [&str; 5] =
    ["completion/complete", "prompts/get", "resources/read", "tools/call", "tools/list"];
/// In the earlier era only.
const LEGACY_METHODS: [&str; 3] = ["initialize", "resources/subscribe", "resources/unsubscribe"];
/// In the later era only.
const MODERN_METHODS: [&str; 1] = ["subscriptions/listen"];

/// Serves the tools of a selection to one client, on behalf of a principal.
#[derive(Clone)]
pub struct Server {
    handle_source: HandleSource,
    selection: Arc<Selection>,
    version: &'static str,
    subscriptions: Subscriptions,
    listening: Arc<Semaphore>,
}

/// Where the handle of a request comes from.
#[derive(Clone)]
enum HandleSource {
    /// One handle for all requests.
    Fixed(Arc<dyn Handle>),
    /// The extensions of each HTTP request.
    Request,
}

impl Server {
    /// A server that uses one handle for all requests.
    pub fn new(handle: Arc<dyn Handle>, selection: Selection, version: &'static str) -> Server {
        Server::with_source(HandleSource::Fixed(handle), selection, version)
    }

    /// A server over HTTP, where each request has a handle among its extensions.
    pub fn with_handle_per_request(selection: Selection, version: &'static str) -> Server {
        Server::with_source(HandleSource::Request, selection, version)
    }

    fn with_source(
        handle_source: HandleSource,
        selection: Selection,
        version: &'static str,
    ) -> Server {
        let (selection, subscriptions) = (Arc::new(selection), Subscriptions::default());
        let listening = Arc::new(Semaphore::new(LISTENING_MAX));
        Server { handle_source, selection, version, subscriptions, listening }
    }

    /// The handle of a request that is not a call of a tool: its errors are for models.
    fn handle(&self, context: &RequestContext<RoleServer>) -> Result<Arc<dyn Handle>, ErrorData> {
        let handle = self.caller_handle(context)?;
        Ok(Arc::new(ModelHints::new(handle, Arc::clone(&self.selection))))
    }

    fn caller_handle(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<Arc<dyn Handle>, ErrorData> {
        let from_request = || {
            let head = context.extensions.get::<http::request::Parts>()?;
            head.extensions.get::<Arc<dyn Handle>>()
        };
        let handle = match &self.handle_source {
            HandleSource::Fixed(handle) => Some(handle),
            HandleSource::Request => from_request(),
        };
        let missing = || ErrorData::internal_error("the request was not authenticated", None);
        Ok(Arc::clone(handle.ok_or_else(missing)?))
    }
}

impl Server {
    /// Says why there is no such tool.
    fn unknown_tool(&self, name: &str) -> String {
        let offered = self.selection.tools().map(|tool| tool.name);
        let shown = abbreviate(name);
        match nearest(name, offered) {
            Some(similar) => format!("there is no tool `{shown}`; did you mean `{similar}`?"),
            None if tools::all().any(|tool| tool.name == name) => {
                format!("the tool `{shown}` is not offered here; tools/list returns all that are")
            }
            None => format!("there is no tool `{shown}`; tools/list returns all tools"),
        }
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
        params: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.selection.tools().map(|tool| tool.definition()).collect();
        let (tools, next) = paginate(tools, params, |tool: &ToolDefinition| &tool.name)?;
        let mut listed = ListToolsResult::with_all_items(tools)
            .with_ttl_ms(LIST_TTL_MS)
            .with_cache_scope(CacheScope::Private);
        listed.next_cursor = next;
        Ok(listed)
    }

    fn get_tool(&self, name: &str) -> Option<ToolDefinition> {
        self.selection.find(name).map(|tool| tool.definition())
    }

    /// A client that cancels the call gets no answer; the request is still executed.
    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.selection.find(&params.name) else {
            let what = self.unknown_tool(&params.name);
            let tool = params.name.into_owned();
            if let Err(error) =
                self.caller_handle(&context)?.report(ToolReport::Missing { tool }).await
            {
                warn!(%error, "failed to record a call of a missing tool");
            }
            return Err(ErrorData::invalid_params(what, None));
        };
        let handle = self.caller_handle(&context)?;
        let tool_context = ToolContext::new(&*handle, tool, &self.selection, &context.meta.0.0);
        let call = tool.call(tool_context, params.arguments.unwrap_or_default());
        let answer = progress::with_progress(&context, call).await;
        let answer = answer.map_err(|error| for_model(error, &self.selection, Some(tool)));
        match &answer {
            Err(error) => debug!(tool = tool.name, code = error.code.name(), "tool call refused"),
            Ok(answer) if tool.elicits_human => {
                let responses = params.input_responses.as_ref();
                if let Some(link) = ApprovalLink::from_response(answer)
                    && let Some(input_required) = link.elicit(&context, responses).await
                {
                    return Ok(input_required.into());
                }
            }
            Ok(_) => {}
        }
        Ok(tool.result_format().render(answer).into())
    }

    /// A request that the SDK could not parse: an unknown method, or a known one with invalid parameters.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = abbreviate(&request.method);
        let of_era = if is_modern(&context) { &MODERN_METHODS[..] } else { &LEGACY_METHODS[..] };
        Err(match METHODS.iter().chain(of_era).any(|known| *known == method) {
            true => ErrorData::invalid_params(format!("invalid parameters for `{method}`"), None),
            false => ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                format!("unknown method `{method}`"),
                None,
            ),
        })
    }

    async fn list_prompts(
        &self,
        params: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let (items, next) = paginate(prompts::all(&self.selection), params, |item| &item.name)?;
        let mut listed = ListPromptsResult::with_all_items(items);
        listed.next_cursor = next;
        Ok(listed)
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&self.selection, &params.name, params.arguments.unwrap_or_default())
            .map(Into::into)
    }

    async fn complete(
        &self,
        params: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let handle = self.handle(&context)?;
        completion::complete(&*handle, &params).await
    }

    async fn list_resources(
        &self,
        params: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let (items, next) = paginate(resources::fixed(), params, |item| &item.uri)?;
        let mut listed = ListResourcesResult::with_all_items(items);
        listed.next_cursor = next;
        Ok(listed)
    }

    async fn list_resource_templates(
        &self,
        params: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let (items, next) = paginate(resources::templates(), params, |item| &item.uri_template)?;
        let mut listed = ListResourceTemplatesResult::with_all_items(items);
        listed.next_cursor = next;
        Ok(listed)
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let handle = self.handle(&context)?;
        resources::read(&*handle, &params.uri).await.map(Into::into)
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let uris = requested.resource_subscriptions.iter().flatten();
        let known = uris.filter(|uri| resources::is_known(uri)).cloned();
        Some(SubscriptionFilter::builder().resource_subscriptions(known).build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let handle = self.handle(context.request_context())?;
        let Ok(_listening) = self.listening.try_acquire() else {
            let what = format!("the limit of {LISTENING_MAX} listening requests is reached");
            return Err(ErrorData::invalid_request(what, None));
        };
        let uris = context.requested().resource_subscriptions.iter().flatten();
        let uris: Vec<String> = uris.cloned().collect();
        resources::check_readable(&*handle, &uris).await?;
        let sink = context.sink().clone();
        // The subscription was acknowledged before the cursor was known, so all resources are notified first.
        let notified = resources::notify_changes(&*handle, &uris, None, |uri| {
            let sink = sink.clone();
            async move { sink.notify_resource_updated(uri).await.is_ok() }
        });
        tokio::select! {
            ended = notified => ended.map_err(|error| resources::subscription_error(&error)),
            () = context.cancelled() => Ok(()),
        }
    }

    async fn subscribe(
        &self,
        params: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let handle = self.handle(&context)?;
        resources::read(&*handle, &params.uri).await?;
        let after = resources::current_cursor(&*handle)
            .await
            .map_err(|error| resources::subscription_error(&error))?;
        self.subscriptions.add(handle, params.uri, after, context.peer)
    }

    async fn unsubscribe(
        &self,
        params: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscriptions.remove(&params.uri);
        Ok(())
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Server({:?})", self.selection)
    }
}

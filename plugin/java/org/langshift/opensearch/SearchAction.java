package org.langshift.opensearch;

import java.io.IOException;
import java.util.List;
import java.util.Map;

import org.opensearch.action.ActionRequest;
import org.opensearch.action.ActionRequestValidationException;
import org.opensearch.action.ActionType;
import org.opensearch.action.IndicesRequest;
import org.opensearch.action.support.ActionFilters;
import org.opensearch.action.support.HandledTransportAction;
import org.opensearch.action.support.IndicesOptions;
import org.opensearch.common.inject.Inject;
import org.opensearch.common.settings.Settings;
import org.opensearch.core.action.ActionListener;
import org.opensearch.core.action.ActionResponse;
import org.opensearch.core.common.bytes.BytesReference;
import org.opensearch.core.common.io.stream.StreamInput;
import org.opensearch.core.common.io.stream.StreamOutput;
import org.opensearch.core.rest.RestStatus;
import org.opensearch.core.tasks.TaskId;
import org.opensearch.core.xcontent.MediaType;
import org.opensearch.core.xcontent.MediaTypeRegistry;
import org.opensearch.rest.BytesRestResponse;
import org.opensearch.rest.RestChannel;
import org.opensearch.rest.RestHandler;
import org.opensearch.rest.RestRequest;
import org.opensearch.rest.RestResponse;
import org.opensearch.rest.action.RestCancellableNodeClient;
import org.opensearch.rest.action.RestResponseListener;
import org.opensearch.tasks.CancellableTask;
import org.opensearch.tasks.Task;
import org.opensearch.threadpool.ExecutorBuilder;
import org.opensearch.threadpool.FixedExecutorBuilder;
import org.opensearch.transport.TransportService;
import org.opensearch.transport.client.Client;
import org.opensearch.transport.client.ParentTaskAssigningClient;
import org.opensearch.transport.client.node.NodeClient;

/** The search `POST /_plugins/_langshift/{index}/search` as an action, which may be permitted, and cancelled. */
final class SearchAction extends ActionType<SearchAction.Response> {

    // Whoever may read all data of an index, by `indices:data/read*`, may do this.
    private static final String ACTION = "indices:data/read/langshift/search";
    /** Threads that wait for the searches of such a search. */
    private static final String THREADS = "langshift_search";
    private static final int MOST_AT_ONCE = 32, MOST_WAITING = 1000;

    static final SearchAction INSTANCE = new SearchAction();

    private SearchAction() {
        super(ACTION, Response::new);
    }

    static ExecutorBuilder<?> threads(Settings settings) {
        return new FixedExecutorBuilder(settings, THREADS, MOST_AT_ONCE, MOST_WAITING, "langshift.search");
    }

    /** A search of an index, as JSON. */
    static final class Request extends ActionRequest implements IndicesRequest {
        private final String index;
        private final BytesReference body;
        private final MediaType type;

        Request(String index, BytesReference body, MediaType type) {
            this.index = index;
            this.body = body;
            this.type = type;
        }

        Request(StreamInput in) throws IOException {
            super(in);
            index = in.readString();
            body = in.readBytesReference();
            type = MediaTypeRegistry.fromMediaType(in.readString());
        }

        @Override
        public void writeTo(StreamOutput out) throws IOException {
            super.writeTo(out);
            out.writeString(index);
            out.writeBytesReference(body);
            out.writeString(type.mediaTypeWithoutParameters());
        }

        @Override
        public String[] indices() {
            return new String[] { index };
        }

        @Override
        public IndicesOptions indicesOptions() {
            return IndicesOptions.strictSingleIndexNoExpandForbidClosed();
        }

        @Override
        public ActionRequestValidationException validate() {
            return null;
        }

        @Override
        public Task createTask(long id, String type, String action, TaskId parent, Map<String, String> headers) {
            return new CancellableTask(id, type, action, "index [" + index + "]", parent, headers) {
                @Override
                public boolean shouldCancelChildrenOnCancellation() {
                    return true;
                }
            };
        }
    }

    /** What was found, as JSON. */
    static final class Response extends ActionResponse {
        private final BytesReference json;

        Response(BytesReference json) {
            this.json = json;
        }

        Response(StreamInput in) throws IOException {
            super(in);
            json = in.readBytesReference();
        }

        @Override
        public void writeTo(StreamOutput out) throws IOException {
            out.writeBytesReference(json);
        }
    }

    /** Carries it out at the node that is asked. */
    public static final class Transport extends HandledTransportAction<Request, Response> {
        private final LangshiftPlugin.Node node;
        private final Client client;
        private final TransportService transport;

        @Inject
        public Transport(LangshiftPlugin.Node node, Client client, TransportService transport, ActionFilters filters) {
            super(ACTION, transport, filters, Request::new);
            this.node = node;
            this.client = client;
            this.transport = transport;
        }

        @Override
        protected void doExecute(Task task, Request request, ActionListener<Response> listener) {
            Client child = new ParentTaskAssigningClient(client, transport.getLocalNode(), task);
            // A search of several steps that waits for each is written, and read, as one.
            transport.getThreadPool().executor(THREADS).execute(() -> ActionListener.completeWith(listener, () -> {
                SearchArguments given = SearchArguments.parse(request.body, request.type, node.contents);
                return new Response(new SearchExecution(node, child, (CancellableTask) task, request.index, given).run());
            }));
        }
    }

    /** Takes it from HTTP. */
    static final class Rest implements RestHandler {

        @Override
        public List<Route> routes() {
            return List.of(new Route(RestRequest.Method.POST, "/_plugins/_langshift/{index}/search"));
        }

        @Override
        public void handleRequest(RestRequest request, RestChannel channel, NodeClient client) {
            Request made = new Request(request.param("index"), request.requiredContent(), request.getMediaType());
            // A client that goes away has its search cancelled.
            new RestCancellableNodeClient(client, request.getHttpChannel()).execute(INSTANCE, made, new RestResponseListener<>(channel) {
                @Override
                public RestResponse buildResponse(Response response) {
                    return new BytesRestResponse(RestStatus.OK, "application/json; charset=UTF-8", response.json);
                }
            });
        }
    }
}

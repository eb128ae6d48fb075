package org.langshift.guard;

import java.io.IOException;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.UnaryOperator;

import org.opensearch.common.util.concurrent.ThreadContext;
import org.opensearch.core.rest.RestStatus;
import org.opensearch.core.xcontent.XContentBuilder;
import org.opensearch.plugins.ActionPlugin;
import org.opensearch.plugins.Plugin;
import org.opensearch.rest.BytesRestResponse;
import org.opensearch.rest.RestChannel;
import org.opensearch.rest.RestHandler;
import org.opensearch.rest.RestRequest;
import org.opensearch.transport.client.node.NodeClient;

/**
 * Refuses requests that a web page of somebody else's makes a browser on this machine send.
 *
 * The embedded server asks for no password, and any page that the user opens may send requests to it. A browser says
 * where they come from, and no page can stop it from doing so: in Origin, in Sec-Fetch-Site, and, where the page's own
 * name was given this machine's address, in Host. Other clients send neither of the first two.
 */
public final class GuardPlugin extends Plugin implements ActionPlugin {

    private static final Set<String> LOOPBACK = Set.of("localhost", "127.0.0.1", "[::1]");
    private static final Set<RestRequest.Method> READING = Set.of(RestRequest.Method.GET, RestRequest.Method.HEAD);
    // Of a page of the server's own, and of an address that somebody typed.
    private static final Set<String> OWN_SITE = Set.of("same-origin", "none");

    @Override
    public UnaryOperator<RestHandler> getRestHandlerWrapper(ThreadContext threadContext) {
        return GuardedHandler::new;
    }

    private record Refusal(RestStatus status, String reason) {

        BytesRestResponse response(RestChannel channel) throws IOException {
            XContentBuilder body = channel.newErrorBuilder().startObject();
            body.field("error", reason).field("status", status.getStatus()).endObject();
            return new BytesRestResponse(status, body);
        }
    }

    /** A handler behind the guard; all that is asked of it beside requests is answered by itself. */
    private static final class GuardedHandler extends RestHandler.Wrapper {

        GuardedHandler(RestHandler handler) {
            super(handler);
        }

        @Override
        public void handleRequest(RestRequest request, RestChannel channel, NodeClient client) throws Exception {
            Refusal refusal = refusal(request);
            if (refusal == null) {
                super.handleRequest(request, channel, client);
            } else {
                channel.sendResponse(refusal.response(channel));
            }
        }
    }

    private static Refusal refusal(RestRequest request) {
        String host = only(request, "Host");
        if (!isOurs(host, request)) {
            return new Refusal(RestStatus.FORBIDDEN, "The embedded OpenSearch is available only as localhost or "
                + "127.0.0.1: the Host header of this request names something else.");
        }
        String origin = only(request, "Origin");
        if (origin != null && !origin.equals("http://" + host)) {
            return new Refusal(RestStatus.FORBIDDEN, "The embedded OpenSearch takes no requests from web pages of "
                + "another origin: let the server of the page send them.");
        }
        String site = only(request, "Sec-Fetch-Site");
        if (site != null && !OWN_SITE.contains(site)) {
            return new Refusal(RestStatus.FORBIDDEN, "The embedded OpenSearch takes no requests from other web pages "
                + "and follows no links on them: type its address into the browser.");
        }
        // A body of such a type never gets here: the server itself refuses it.
        if (!READING.contains(request.method()) && only(request, "Content-Type") != null
            && request.getMediaType() == null) {
            return new Refusal(RestStatus.UNSUPPORTED_MEDIA_TYPE, "The embedded OpenSearch takes JSON only: send the "
                + "header Content-Type: application/json, or none where there is no body.");
        }
        return null;
    }

    /** Whether a Host header names this server. Its port may be another one's that passes requests on, as ssh -L does. */
    private static boolean isOurs(String host, RestRequest request) {
        if (host == null) {
            return false;
        }
        int port = host.startsWith("[") ? host.indexOf(']') + 1 : host.indexOf(':');
        String name = port > 0 ? host.substring(0, port) : host;
        return LOOPBACK.contains(name)
            || name.equals(request.getHttpChannel().getLocalAddress().getAddress().getHostAddress());
    }

    /** A header in lower case; null where it is missing, and a value that nothing equals where there are several. */
    private static String only(RestRequest request, String header) {
        List<String> values = request.getAllHeaderValues(header);
        if (values == null || values.isEmpty()) {
            return null;
        }
        return values.size() == 1 ? values.get(0).toLowerCase(Locale.ROOT) : "several";
    }
}

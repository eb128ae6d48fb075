package org.langshift.opensearch;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

import org.opensearch.OpenSearchStatusException;
import org.opensearch.action.support.ContextPreservingActionListener;
import org.opensearch.common.settings.SecureSetting;
import org.opensearch.common.settings.Setting;
import org.opensearch.common.settings.Settings;
import org.opensearch.common.unit.TimeValue;
import org.opensearch.common.xcontent.XContentHelper;
import org.opensearch.common.xcontent.json.JsonXContent;
import org.opensearch.core.action.ActionListener;
import org.opensearch.core.common.bytes.BytesReference;
import org.opensearch.core.common.settings.SecureString;
import org.opensearch.core.rest.RestStatus;
import org.opensearch.core.xcontent.XContentBuilder;
import org.opensearch.threadpool.ThreadPool;

/** Makes vectors of texts at endpoints of OpenAI's shape, which the node's settings name: no request can name another. */
final class Encoders {

    private static final String PREFIX = "langshift.encoders.", PATH = "/v1/embeddings";

    static final Setting.AffixSetting<String> URL = Setting.affixKeySetting(
        PREFIX,
        "url",
        key -> Setting.simpleString(key, Encoders::requireUrl, Setting.Property.NodeScope)
    );
    static final Setting.AffixSetting<String> MODEL = Setting.affixKeySetting(
        PREFIX,
        "model",
        key -> Setting.simpleString(key, Setting.Property.NodeScope)
    );
    /** The encoder of the indices that it is for; the setting's own name where it is left out. */
    static final Setting.AffixSetting<String> ENCODER = Setting.affixKeySetting(
        PREFIX,
        "encoder",
        key -> Setting.simpleString(key, Setting.Property.NodeScope)
    );
    static final Setting.AffixSetting<TimeValue> TIMEOUT = Setting.affixKeySetting(
        PREFIX,
        "timeout",
        key -> Setting.timeSetting(key, TimeValue.timeValueSeconds(10), TimeValue.timeValueMillis(100), Setting.Property.NodeScope)
    );
    static final Setting.AffixSetting<SecureString> KEY = Setting.affixKeySetting(
        PREFIX,
        "key",
        key -> SecureSetting.secureString(key, null)
    );

    private static final int MOST_AT_ONCE = 32, MOST_KEPT = 1_000, MOST_BYTES = 1 << 20;
    private static final Duration CONNECT = Duration.ofSeconds(5);

    private record Endpoint(String name, URI address, String model, TimeValue timeout, String key) {}

    private final Map<String, Endpoint> endpoints = new HashMap<>();
    private final Semaphore free = new Semaphore(MOST_AT_ONCE);
    private final ThreadPool threads;
    private HttpClient client;
    private final Map<List<String>, float[]> kept = new LinkedHashMap<>(16, 0.75f, true) {
        @Override
        protected boolean removeEldestEntry(Map.Entry<List<String>, float[]> eldest) {
            return size() > MOST_KEPT;
        }
    };

    Encoders(Settings settings, ThreadPool threads) {
        this.threads = threads;
        for (String name : URL.getNamespaces(settings)) {
            String encoder = ENCODER.getConcreteSettingForNamespace(name).get(settings);
            // The keystore is closed once the node has started.
            try (SecureString key = KEY.getConcreteSettingForNamespace(name).get(settings)) {
                Endpoint made = new Endpoint(
                    name,
                    address(URL.getConcreteSettingForNamespace(name).get(settings)),
                    MODEL.getConcreteSettingForNamespace(name).get(settings),
                    TIMEOUT.getConcreteSettingForNamespace(name).get(settings),
                    key.toString()
                );
                endpoints.put(encoder.isEmpty() ? name : encoder, made);
            }
        }
    }

    static List<Setting<?>> settings() {
        return List.of(URL, MODEL, ENCODER, TIMEOUT, KEY);
    }

    private static void requireUrl(String url) {
        if (!url.matches("https?://[^\\s?#]+")) {
            throw new IllegalArgumentException("The address of an encoder begins with http:// or https://, and is not [" + url + "].");
        }
    }

    private static URI address(String url) {
        String root = url.replaceAll("/+$", "").replaceAll("(/v1)?/embeddings$", "").replaceAll("/v1$", "");
        return URI.create(root + PATH);
    }

    /**
     * Makes the vector of a text.
     *
     * @param encoder as the index's fingerprint names it
     * @param input the text with its prefix
     */
    void encode(String encoder, int dimension, String input, ActionListener<float[]> listener) {
        Endpoint endpoint = endpoints.get(encoder);
        Refused.when(
            endpoint == null,
            "needs a [vector]: the node has no endpoint for the encoder " + encoder + " of the index (node setting " + PREFIX + "NAME.url)."
        );
        List<String> asked = List.of(endpoint.name, input);
        float[] known;
        synchronized (kept) {
            known = kept.get(asked);
        }
        if (known != null) {
            listener.onResponse(known);
            return;
        }
        if (!free.tryAcquire()) {
            throw new OpenSearchStatusException(
                "[langshift] " + MOST_AT_ONCE + " texts are being encoded already: try again.",
                RestStatus.TOO_MANY_REQUESTS
            );
        }
        ActionListener<float[]> then = ContextPreservingActionListener.wrapPreservingContext(listener, threads.getThreadContext());
        CompletableFuture<HttpResponse<byte[]>> sent;
        try {
            sent = client().sendAsync(request(endpoint, input), info -> new Limited());
        } catch (IOException | RuntimeException error) {
            free.release();
            then.onFailure(failed(endpoint, "could not be asked"));
            return;
        }
        sent.copy().orTimeout(endpoint.timeout.millis(), TimeUnit.MILLISECONDS).whenComplete((answer, error) -> {
            free.release();
            sent.cancel(true);
            threads.generic().execute(() -> finish(endpoint, asked, dimension, answer, error, then));
        });
    }

    private void finish(
        Endpoint endpoint, List<String> asked, int dimension, HttpResponse<byte[]> answer, Throwable error, ActionListener<float[]> then
    ) {
        try {
            if (error != null) {
                Throwable cause = error instanceof CompletionException && error.getCause() != null ? error.getCause() : error;
                boolean late = cause instanceof TimeoutException || cause instanceof HttpTimeoutException;
                throw failed(endpoint, late ? "did not answer within " + endpoint.timeout : "did not answer, or with more than 1 MB");
            }
            if (answer.statusCode() != 200) {
                throw failed(endpoint, "answered with status " + answer.statusCode());
            }
            float[] vector = read(answer.body());
            if (vector == null || vector.length != dimension) {
                throw failed(endpoint, "answered with something else than a vector of " + dimension + " finite numbers");
            }
            synchronized (kept) {
                kept.put(asked, vector);
            }
            then.onResponse(vector);
        } catch (Exception failure) {
            then.onFailure(failure);
        }
    }

    private static OpenSearchStatusException failed(Endpoint endpoint, String what) {
        // Never what the endpoint said: that may hold its key.
        String why = "[langshift] The endpoint of the encoder " + endpoint.name + " " + what + ".";
        return new OpenSearchStatusException(why, RestStatus.BAD_GATEWAY);
    }

    private static HttpRequest request(Endpoint endpoint, String input) throws IOException {
        HttpRequest.Builder made = HttpRequest.newBuilder(endpoint.address).timeout(Duration.ofMillis(endpoint.timeout.millis()))
            .header("Content-Type", "application/json").header("Accept", "application/json");
        if (!endpoint.key.isEmpty()) {
            made.header("Authorization", "Bearer " + endpoint.key);
        }
        try (XContentBuilder body = XContentBuilder.builder(JsonXContent.jsonXContent)) {
            body.startObject().field("model", endpoint.model).array("input", input).endObject();
            return made.POST(HttpRequest.BodyPublishers.ofByteArray(BytesReference.toBytes(BytesReference.bytes(body)))).build();
        }
    }

    private synchronized HttpClient client() {
        if (client == null) {
            // Some servers refuse the wish for HTTP/2.
            client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(CONNECT)
                .followRedirects(HttpClient.Redirect.NEVER).build();
        }
        return client;
    }

    /** The one vector in an answer; null where it holds none of finite numbers. */
    private static float[] read(byte[] body) {
        try {
            String json = new String(body, StandardCharsets.UTF_8);
            Map<String, Object> answer = XContentHelper.convertToMap(JsonXContent.jsonXContent, json, false);
            Object first = answer.get("data") instanceof List<?> data && data.size() == 1 ? data.get(0) : null;
            if (!(IndexFacts.map(first).get("embedding") instanceof List<?> numbers)) {
                return null;
            }
            float[] made = LangshiftQueryBuilder.floats(numbers.stream().map(Number.class::cast).toList());
            for (float one : made) {
                if (!Float.isFinite(one)) {
                    return null;
                }
            }
            return made;
        } catch (RuntimeException unreadable) {
            return null;
        }
    }

    /** The body of an answer, of which more than 1 MB is not read. */
    private static final class Limited implements HttpResponse.BodySubscriber<byte[]> {
        private final HttpResponse.BodySubscriber<byte[]> whole = HttpResponse.BodySubscribers.ofByteArray();
        private Flow.Subscription subscription;
        private long bytes;

        @Override
        public CompletionStage<byte[]> getBody() {
            return whole.getBody();
        }

        @Override
        public void onSubscribe(Flow.Subscription given) {
            subscription = given;
            whole.onSubscribe(given);
        }

        @Override
        public void onNext(List<ByteBuffer> parts) {
            bytes += parts.stream().mapToLong(ByteBuffer::remaining).sum();
            if (bytes > MOST_BYTES) {
                subscription.cancel();
                whole.onError(new IOException("too long"));
            } else {
                whole.onNext(parts);
            }
        }

        @Override
        public void onError(Throwable error) {
            whole.onError(error);
        }

        @Override
        public void onComplete() {
            whole.onComplete();
        }
    }
}

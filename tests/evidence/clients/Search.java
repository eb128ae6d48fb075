import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;

/** Searches an index, which is named, by a text alone, and prints the ids of five hits as JSON. */
public final class Search {

    public static void main(String[] arguments) throws Exception {
        String body = """
            { "size": 5, "query": { "langshift": { "text": "Warum steigt das Meer?", "language": "de" } } }
            """;
        String path = "/" + arguments[0] + "/_search?filter_path=hits.hits._id";
        HttpRequest request = HttpRequest.newBuilder(URI.create(System.getenv("OPENSEARCH_URL") + path))
            .header("Content-Type", "application/json")
            .POST(BodyPublishers.ofString(body))
            .build();
        System.out.println(HttpClient.newHttpClient().send(request, BodyHandlers.ofString()).body());
    }
}

package org.langshift.opensearch;

import java.util.Arrays;
import java.util.List;

import org.opensearch.OpenSearchStatusException;
import org.opensearch.action.search.SearchRequest;
import org.opensearch.action.search.SearchResponse;
import org.opensearch.action.support.PlainActionFuture;
import org.opensearch.core.rest.RestStatus;
import org.opensearch.core.tasks.TaskCancelledException;
import org.opensearch.search.builder.SearchSourceBuilder;
import org.opensearch.tasks.CancellableTask;
import org.opensearch.transport.client.Client;

/** Sends the searches of which one search consists, and waits for them. */
final class Requests {

    // What a node says that cannot read the query.
    private static final String UNKNOWN = "Unknown NamedWriteable";

    final Client client;
    private final String index;
    private final CancellableTask task;

    /**
     * @param client sends as who asked for the search
     * @param index the concrete one, which stays the same whatever an alias stands for meanwhile
     */
    Requests(Client client, String index, CancellableTask task) {
        this.client = client;
        this.index = index;
        this.task = task;
    }

    SearchRequest of(SearchSourceBuilder source) {
        // Not through the index's default pipeline.
        return new SearchRequest(new String[] { index }, source).pipeline("_none");
    }

    SearchResponse ask(SearchSourceBuilder source) {
        return ask(List.of(of(source))).get(0);
    }

    /** Asks all at once; whole answers are returned, in the order of the requests. */
    List<SearchResponse> ask(List<SearchRequest> requests) {
        if (task.isCancelled()) {
            throw new TaskCancelledException("[langshift] The search was cancelled.");
        }
        List<PlainActionFuture<SearchResponse>> sent = requests.stream().map(one -> {
            PlainActionFuture<SearchResponse> answer = PlainActionFuture.newFuture();
            client.search(one, answer);
            return answer;
        }).toList();
        List<SearchResponse> answers = sent.stream().map(PlainActionFuture::actionGet).toList();
        answers.forEach(answer -> requireWhole(index, answer));
        return answers;
    }

    /** Refuses an answer that not all shards gave. */
    static void requireWhole(String index, SearchResponse answer) {
        boolean lacking = Arrays.stream(answer.getShardFailures()).anyMatch(one -> one.reason().contains(UNKNOWN));
        Refused.when(lacking, "A node that holds a part of " + index + " lacks the plugin langshift: install it on every node.");
        if (answer.getFailedShards() > 0 || answer.isTimedOut()) {
            String why = "[langshift] Not all shards of " + index + " answered in time: try again.";
            throw new OpenSearchStatusException(why, RestStatus.SERVICE_UNAVAILABLE);
        }
    }
}

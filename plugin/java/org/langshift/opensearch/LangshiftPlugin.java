package org.langshift.opensearch;

import java.util.Collection;
import java.util.List;
import java.util.function.Supplier;

import org.opensearch.cluster.metadata.IndexNameExpressionResolver;
import org.opensearch.cluster.service.ClusterService;
import org.opensearch.core.common.io.stream.NamedWriteableRegistry;
import org.opensearch.core.xcontent.NamedXContentRegistry;
import org.opensearch.env.Environment;
import org.opensearch.env.NodeEnvironment;
import org.opensearch.plugins.Plugin;
import org.opensearch.plugins.SearchPlugin;
import org.opensearch.repositories.RepositoriesService;
import org.opensearch.script.ScriptService;
import org.opensearch.threadpool.ThreadPool;
import org.opensearch.transport.client.Client;
import org.opensearch.watcher.ResourceWatcherService;

/** What the plugin brings: the query `langshift`. */
public final class LangshiftPlugin extends Plugin implements SearchPlugin {

    /** What queries need of their node: parsers are made before it is there, and several nodes may share one JVM. */
    private final Node node = new Node();

    /** The services of a node; set once it has started. */
    static final class Node {
        volatile ClusterService cluster;
        volatile IndexNameExpressionResolver names;
    }

    @Override
    public Collection<Object> createComponents(
        Client client,
        ClusterService clusterService,
        ThreadPool threadPool,
        ResourceWatcherService resourceWatcherService,
        ScriptService scriptService,
        NamedXContentRegistry xContentRegistry,
        Environment environment,
        NodeEnvironment nodeEnvironment,
        NamedWriteableRegistry namedWriteableRegistry,
        IndexNameExpressionResolver indexNameExpressionResolver,
        Supplier<RepositoriesService> repositoriesServiceSupplier
    ) {
        node.cluster = clusterService;
        node.names = indexNameExpressionResolver;
        return List.of();
    }

    @Override
    public List<QuerySpec<?>> getQueries() {
        return List.of(
            new QuerySpec<>(
                LangshiftQueryBuilder.NAME,
                in -> new LangshiftQueryBuilder(in, node),
                parser -> LangshiftQueryBuilder.fromXContent(parser, node)
            )
        );
    }
}

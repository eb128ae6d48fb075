package org.langshift.opensearch;

import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

import org.opensearch.cluster.metadata.IndexNameExpressionResolver;
import org.opensearch.cluster.service.ClusterService;
import org.opensearch.common.settings.Settings;
import org.opensearch.core.common.io.stream.NamedWriteableRegistry;
import org.opensearch.core.xcontent.NamedXContentRegistry;
import org.opensearch.env.Environment;
import org.opensearch.env.NodeEnvironment;
import org.opensearch.index.IndexModule;
import org.opensearch.plugins.Plugin;
import org.opensearch.plugins.SearchPlugin;
import org.opensearch.repositories.RepositoriesService;
import org.opensearch.script.ScriptService;
import org.opensearch.search.deciders.ConcurrentSearchRequestDecider;
import org.opensearch.search.fetch.FetchSubPhase;
import org.opensearch.threadpool.ThreadPool;
import org.opensearch.transport.client.Client;
import org.opensearch.watcher.ResourceWatcherService;

/** The plugin `langshift-search`: the query `langshift`, which any node may be given, as it brings no action and needs no permission. */
public class LangshiftSearchPlugin extends Plugin implements SearchPlugin {

    /** The attribute by which nodes tell one another which form of the query they read. */
    static final String ATTRIBUTE = "langshift";

    /** What queries need of their node: parsers are made before it is there, and several nodes may share one JVM. */
    final Node node = new Node();

    @Override
    public Collection<Object> createComponents(
        Client client, ClusterService clusterService, ThreadPool threadPool, ResourceWatcherService watcher, ScriptService scripts,
        NamedXContentRegistry xContent, Environment environment, NodeEnvironment nodeEnvironment, NamedWriteableRegistry writeable,
        IndexNameExpressionResolver names, Supplier<RepositoriesService> repositories
    ) {
        node.cluster = clusterService;
        node.names = names;
        node.threads = threadPool.getThreadContext();
        return List.of();
    }

    @Override
    public void onIndexModule(IndexModule index) {
        index.addSearchOperationListener(new DocumentSecurity(node));
    }

    @Override
    public Settings additionalSettings() {
        return Settings.builder().put("node.attr." + ATTRIBUTE, LangshiftQueryBuilder.FORM).build();
    }

    @Override
    public List<FetchSubPhase> getFetchSubPhases(FetchPhaseConstructionContext context) {
        return List.of(new VectorsFetch());
    }

    @Override
    public Optional<ConcurrentSearchRequestDecider.Factory> getConcurrentSearchRequestDeciderFactory() {
        return Optional.of(new ConcurrentSearch.Factory());
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

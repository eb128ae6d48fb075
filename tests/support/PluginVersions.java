import java.nio.file.Path;

import org.opensearch.Version;
import org.opensearch.plugins.PluginInfo;
import org.opensearch.plugins.PluginsService;

/** What the OpenSearch whose classes these are says of a plugin's descriptor in a folder, of itself and of a newer version. */
final class PluginVersions {

    public static void main(String[] told) throws Exception {
        PluginInfo info = PluginInfo.readFromProperties(Path.of(told[0]));
        String said = "taken";
        try {
            PluginsService.verifyCompatibility(info);
        } catch (IllegalArgumentException refused) {
            said = refused.getMessage().replace('"', '\'');
        }
        Version newer = Version.fromString(told[1]);
        boolean taken = info.getOpenSearchVersionRanges().stream().anyMatch(range -> range.isSatisfiedBy(newer));
        System.out.printf("{\"version\": \"%s\", \"said\": \"%s\", \"newer\": %b}%n", Version.CURRENT, said, taken);
    }
}

package org.langshift.opensearch;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Base64;
import java.util.BitSet;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;

/** Detects the language of a text by fastText's lid.176, and its script: `debias/detector.py`, where it is explained. */
final class Detector {

    /** @param confidence 0 to 1 */
    record Detection(String language, double confidence) {}

    private static final Detection UNKNOWN = new Detection(Languages.UND, 0);
    private static final double LEAST_POSTERIOR = 0.001, LEAST_SHARE = 0.1;
    private static final int SCRIPT_READ = 200;
    private static final String JAPANESE = "ja", PREFIX = "__label__", SIMPLIFIED = "Hans", TRADITIONAL = "Hant";
    private static final Pattern KANA = Pattern.compile("[\u3040-\u30ff]");
    private static final Pattern CHINESE = Pattern.compile("[\u3400-\u9fff]");

    private final FastText model;
    private final PlainText texts;
    private final Map<String, Object> tables;
    private final Map<String, Pattern> letters;
    private final BitSet simplified, traditional, japanese;

    private Detector(FastText model, Map<String, Object> tables) {
        this.model = model;
        this.tables = tables;
        texts = new PlainText(tables);
        letters = PlainText.compiled(table("letters"));
        simplified = characters("gb2312");
        traditional = characters("big5");
        japanese = characters("euc_jis_2004");
    }

    /** The detector that came with the plugin; null where it came without one. */
    static Detector load() {
        try (InputStream in = Detector.class.getResourceAsStream("lid.176.ftz")) {
            return in == null ? null : new Detector(new FastText(in.readAllBytes()), Languages.read("detector.json"));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private Map<String, Object> table(String name) {
        return IndexFacts.map(tables.get(name));
    }

    private BitSet characters(String encoding) {
        return BitSet.valueOf(Base64.getDecoder().decode((String) table("characters").get(encoding)));
    }

    /**
     * The most probable language of a text.
     *
     * @param limited the languages that it may be in, as the field of the language holds them; empty for all
     * @return with the tag `und` where nothing speaks for any of them
     */
    Detection detect(String text, Collection<String> limited) {
        String line = line(text);
        Map<String, Detection> kept = found(line, limited.isEmpty() ? LEAST_POSTERIOR : 0);
        if (!limited.isEmpty()) {
            kept = within(kept, limited);
            if (total(kept) < LEAST_SHARE) {
                return UNKNOWN;
            }
        }
        Detection best = best(kept.values());
        if (best == null) {
            return UNKNOWN;
        }
        // The model's posteriors add up to a little more than 1.
        double of = limited.isEmpty() ? Math.max(1, best.confidence) : total(kept);
        return new Detection(withScript(best.language, line), best.confidence / of);
    }

    /** What is read of a text; of one with as many capitals as a title, or as names have, what is surer. */
    private String line(String text) {
        String line = texts.line(text), lower = texts.inLowerCase(line);
        if (lower.equals(line) || texts.isInCapitals(line)) {
            return lower;
        }
        return surest(line) > surest(lower) ? line : lower;
    }

    private float surest(String line) {
        List<FastText.Prediction> made = model.predict(line, 0);
        return made.isEmpty() ? 0 : made.get(0).posterior();
    }

    /** Language as its field holds it -> its likeliest tag, and the posterior of all its tags. */
    private Map<String, Detection> found(String line, double least) {
        Map<String, Detection> found = new LinkedHashMap<>();
        if (line.codePoints().noneMatch(Character::isLetter)) {
            return found;
        }
        for (FastText.Prediction one : model.predict(line, least)) {
            List<?> told = (List<?>) table("labels").get(one.label().substring(PREFIX.length()));
            found.merge(
                (String) told.get(0),
                new Detection((String) told.get(1), one.posterior()),
                (before, now) -> new Detection(before.language, before.confidence + now.confidence)
            );
        }
        if (found.containsKey(JAPANESE) && cannotBeJapanese(line)) {
            // A Chinese question of a few words is often taken for it.
            double rest = Math.max(1 - found.remove(JAPANESE).confidence, LEAST_POSTERIOR);
            found.replaceAll((language, one) -> new Detection(one.language, one.confidence / rest));
        }
        return found;
    }

    /** Whether a text in Chinese characters has no kana, and some character that no Japanese encoding has. */
    private boolean cannotBeJapanese(String text) {
        return !KANA.matcher(text).find() && CHINESE.matcher(text).find()
            && text.codePoints().anyMatch(one -> !japanese.get(one));
    }

    /** What was found of some languages, each with what its lookalikes have that are not among these. */
    private Map<String, Detection> within(Map<String, Detection> found, Collection<String> allowed) {
        Map<String, Detection> kept = new LinkedHashMap<>(found);
        kept.keySet().retainAll(allowed);
        found.forEach((language, one) -> {
            List<?> near = table("lookalikes").get(language) instanceof List<?> list && !allowed.contains(language) ? list : List.of();
            String likeliest = near.stream()
                .map(String.class::cast)
                .filter(kept::containsKey)
                .max(Comparator.comparingDouble(other -> kept.get(other).confidence))
                .orElse(null);
            kept.computeIfPresent(
                likeliest == null ? "" : likeliest,
                (other, before) -> new Detection(before.language, before.confidence + one.confidence)
            );
        });
        return kept;
    }

    private static Detection best(Collection<Detection> found) {
        // Of equals the first.
        return found.stream().reduce((one, other) -> other.confidence > one.confidence ? other : one).orElse(null);
    }

    private static double total(Map<String, Detection> found) {
        return found.values().stream().mapToDouble(Detection::confidence).sum();
    }

    /** The tag of a text's language with the script of the text, where the language is written in several. */
    private String withScript(String tag, String text) {
        Map<String, Object> several = IndexFacts.map(table("scripts").get(tag));
        if (several.isEmpty()) {
            return tag;
        }
        int length = Math.min(SCRIPT_READ, text.codePointCount(0, text.length()));
        String beginning = text.substring(0, text.offsetByCodePoints(0, length));
        String script = several.containsKey(SIMPLIFIED) ? chineseScript(beginning) : script(beginning, several.keySet());
        return several.get(script) instanceof String written ? written : tag;
    }

    /** Which Chinese characters are in the majority, of those that Traditional or Simplified Chinese alone has. */
    private String chineseScript(String text) {
        long one = text.codePoints().filter(simplified::get).count(), other = text.codePoints().filter(traditional::get).count();
        return one == other ? "" : one > other ? SIMPLIFIED : TRADITIONAL;
    }

    /** Which of some scripts most letters are in. */
    private String script(String text, Collection<String> scripts) {
        Map<String, Long> counts = new HashMap<>();
        scripts.forEach(one -> counts.put(one, letters.get(one).matcher(text).results().count()));
        Comparator<String> frequent = Comparator.comparing(counts::get);
        return scripts.stream()
            .filter(one -> counts.get(one) > 0)
            .max(frequent.thenComparing(Comparator.naturalOrder()))
            .orElse("");
    }
}

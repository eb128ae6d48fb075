package org.langshift.opensearch;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.function.BiConsumer;

import org.opensearch.core.common.io.stream.StreamInput;
import org.opensearch.core.common.io.stream.StreamOutput;
import org.opensearch.core.common.io.stream.Writeable;
import org.opensearch.index.query.QueryBuilder;

/**
 * A search: first what is asked, then what each shard is to do, with nothing left to default.
 *
 * @param mode what is asked for, or what a shard is to do
 * @param text in normal form; null where none is given
 * @param language of the query as the field holds it, `und` where unknown
 * @param vector of the query; empty while nothing has made it
 * @param preference what documents in the query's language are given more, in units of cosine; below 0 all others
 * @param k how many documents of each shard are looked at, 0 while that is not known
 * @param size how many hits are wanted, 0 while that is not known
 * @param filter what documents must match; null for all
 * @param restriction what the searcher may see, where the security plugin says so in the request; null for all
 * @param trust what `anchored` reckons with
 * @param addition what is added to the cosines
 */
record SearchSpec(
    Mode mode,
    String text,
    String language,
    float[] vector,
    double preference,
    int k,
    int size,
    boolean onePerGroup,
    QueryBuilder filter,
    QueryBuilder restriction,
    Trust trust,
    Addition addition
) implements Writeable {

    /** Those that a user may ask for, and those that follow from them. */
    enum Mode {
        AUTO, DENSE, BALANCED, ANCHORED, HYBRID,
        /** The few nearest by the query's own vector, which may answer. */
        NEAREST,
        /** What may answer by its words, with its score by these. */
        WORDS,
        /** Documents drawn at random. */
        SAMPLE,
        /** The best document of each group that dense finds, or anchored once the query is moved; or what these are found among. */
        GROUPS,
        /** What matches the filter, scored exactly. */
        EXACT,
        /** The documents of `Addition.given`, with these scores. */
        GIVEN;

        String lower() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /**
     * What `anchored` reckons with.
     *
     * @param spread NaN where a sample is to be drawn
     * @param counterpart how likely an answer in another language is there in the searcher's, too
     * @param documents how many the index had when it was calibrated, where the mode comes from that; else 0
     */
    record Trust(double strength, double spread, double counterpart, int documents) {}

    /**
     * What is added to the cosines, on the scale of scores.
     *
     * @param bonus for the query's language, or below 0 for all others
     * @param both whether the nearest of those that the bonus favours are looked at, too
     * @param given by `_id`
     */
    record Addition(double bonus, boolean both, Map<String, Float> given) {
        static final Addition NONE = new Addition(0, false, Map.of());
    }

    static final Trust NO_TRUST = new Trust(0, 1, 0, 0);

    SearchSpec(StreamInput in) throws IOException {
        this(
            in.readEnum(Mode.class),
            in.readOptionalString(),
            in.readString(),
            in.readFloatArray(),
            in.readDouble(),
            in.readVInt(),
            in.readVInt(),
            in.readBoolean(),
            in.readOptionalNamedWriteable(QueryBuilder.class),
            in.readOptionalNamedWriteable(QueryBuilder.class),
            new Trust(in.readDouble(), in.readDouble(), in.readDouble(), in.readVInt()),
            new Addition(in.readDouble(), in.readBoolean(), in.readMap(StreamInput::readString, StreamInput::readFloat))
        );
    }

    @Override
    public void writeTo(StreamOutput out) throws IOException {
        out.writeEnum(mode);
        out.writeOptionalString(text);
        out.writeString(language);
        out.writeFloatArray(vector);
        out.writeDouble(preference);
        out.writeVInt(k);
        out.writeVInt(size);
        out.writeBoolean(onePerGroup);
        out.writeOptionalNamedWriteable(filter);
        out.writeOptionalNamedWriteable(restriction);
        out.writeDouble(trust.strength);
        out.writeDouble(trust.spread);
        out.writeDouble(trust.counterpart);
        out.writeVInt(trust.documents);
        out.writeDouble(addition.bonus);
        out.writeBoolean(addition.both);
        out.writeMap(addition.given, StreamOutput::writeString, StreamOutput::writeFloat);
    }

    boolean isResolved() {
        return k > 0;
    }

    SearchSpec with(Mode other) {
        return new SearchSpec(other, text, language, vector, preference, k, size, onePerGroup, filter, restriction, trust, addition);
    }

    SearchSpec with(QueryBuilder other) {
        return new SearchSpec(mode, text, language, vector, preference, k, size, onePerGroup, other, restriction, trust, addition);
    }

    SearchSpec restricted(QueryBuilder to) {
        return new SearchSpec(mode, text, language, vector, preference, k, size, onePerGroup, filter, to, trust, addition);
    }

    SearchSpec with(float[] other) {
        return new SearchSpec(mode, text, language, other, preference, k, size, onePerGroup, filter, restriction, trust, addition);
    }

    SearchSpec with(Trust other) {
        return new SearchSpec(mode, text, language, vector, preference, k, size, onePerGroup, filter, restriction, other, addition);
    }

    SearchSpec with(Addition other) {
        return new SearchSpec(mode, text, language, vector, preference, k, size, onePerGroup, filter, restriction, trust, other);
    }

    /** For so many hits, one of each group or whatever their groups. */
    SearchSpec deep(int otherK, int otherSize, boolean groups) {
        return new SearchSpec(mode, text, language, vector, preference, otherK, otherSize, groups, filter, restriction, trust, addition);
    }

    /** The nearest by the query's vector with its preference, as `dense` finds them. */
    SearchSpec dense() {
        double beta = effectivePreference();
        return with(Mode.DENSE).with(NO_TRUST).with(new Addition(beta / 2, beta != 0, Map.of()));
    }

    /**
     * What the second step of an anchored search searches with; nothing where no candidate has a vector.
     *
     * @param gathered what may answer the query, in its order, with the score by words, else 0
     * @param vectors of what was gathered; null for what has none, and is no candidate
     * @param words how many different words the query has, at least 1
     * @param own how many documents in the query's language the index or shard has
     * @param documents among which the words are looked for, on a shard's average
     * @param given is told what a candidate is given for words in other languages
     */
    SearchSpec moved(
        List<Entry> gathered, List<double[]> vectors, double spread, IndexFacts facts, int words, long own, double documents,
        BiConsumer<Entry, Float> given
    ) {
        List<Entry> kept = new ArrayList<>();
        List<Anchors.Candidate> candidates = new ArrayList<>();
        for (int i = 0; i < gathered.size(); i++) {
            Entry one = gathered.get(i);
            if (vectors.get(i) != null) {
                kept.add(one);
                candidates.add(new Anchors.Candidate(isOwn(one), one.score, vectors.get(i)));
            }
        }
        if (kept.isEmpty()) {
            return with(Mode.GIVEN).with(Addition.NONE);
        }
        double best = gathered.stream().mapToDouble(one -> one.score).max().orElse(0);
        Anchors.Setting setting = new Anchors.Setting(
            trust.strength(), spread, trust.counterpart(), facts.directions(), facts.preferred(language), documents, words, best,
            own > 0, effectivePreference()
        );
        Anchors.Moved to = Anchors.move(Anchors.unit(Anchors.doubles(vector)), candidates, setting);
        for (int i = 0; i < kept.size(); i++) {
            if (to.given()[i] > 0) {
                given.accept(kept.get(i), (float) to.given()[i]);
            }
        }
        Addition bonus = new Addition(to.bonus(), effectivePreference() != 0, Map.of());
        return with(Mode.DENSE).with(to.vector()).with(bonus).with(new Trust(trust.strength(), spread, 0, 0));
    }

    boolean isOwn(Entry one) {
        return knowsLanguage() && one.language.equals(language);
    }

    /** How many documents a shard looks at first for as many groups as are wanted. */
    int groupsDepth() {
        return Math.min(LangshiftQueryBuilder.MOST, Math.max(k, 2 * size));
    }

    boolean knowsLanguage() {
        return !language.equals(Languages.UND);
    }

    double effectivePreference() {
        return knowsLanguage() ? preference : 0;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof SearchSpec that && mode == that.mode && Objects.equals(text, that.text)
            && language.equals(that.language) && Arrays.equals(vector, that.vector) && preference == that.preference && k == that.k
            && size == that.size && onePerGroup == that.onePerGroup && Objects.equals(filter, that.filter)
            && Objects.equals(restriction, that.restriction) && trust.equals(that.trust) && addition.equals(that.addition);
    }

    @Override
    public int hashCode() {
        return Objects.hash(mode, text, language, Arrays.hashCode(vector), preference, k, size, onePerGroup, filter, restriction, trust, addition);
    }
}

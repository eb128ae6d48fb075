package org.langshift.opensearch;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A classifier of texts as fastText keeps it in a file: quantised vectors of words and their parts, a tree of labels. */
final class FastText {

    /** @param posterior 0 to 1; those of all labels add up to a little more than 1 */
    record Prediction(String label, float posterior) {}

    private static final int MAGIC = 793712314, VERSION = 12, HIERARCHICAL = 1, CENTROIDS = 256;
    private static final int HASH = 0x811c9dc5, PRIME = 16777619;
    private static final String END = "</s>";

    private final int dimension, buckets, shortest, longest, words;
    private final Map<String, Integer> known = new HashMap<>();
    // Hash of a part of a word -> its place, of the parts that were kept.
    private final Map<Integer, Integer> kept = new HashMap<>();
    private final List<String> labels = new ArrayList<>();
    /** The vectors of words, then of their parts. */
    private final float[] input;
    /** The vectors of the inner nodes of the tree. */
    private final float[] output;
    private final int[] left, right;

    /** @param model the bytes of the file */
    FastText(byte[] model) {
        ByteBuffer in = ByteBuffer.wrap(model).order(ByteOrder.LITTLE_ENDIAN);
        require(in.getInt() == MAGIC && in.getInt() == VERSION);
        dimension = in.getInt();
        skip(in, 4 * Integer.BYTES);
        require(in.getInt() == 1 && in.getInt() == HIERARCHICAL);
        in.getInt();
        buckets = in.getInt();
        shortest = in.getInt();
        longest = in.getInt();
        skip(in, Integer.BYTES + Double.BYTES);
        int size = in.getInt();
        words = in.getInt();
        int count = in.getInt();
        in.getLong();
        long parts = in.getLong();
        long[] counts = new long[count];
        for (int i = 0; i < size; i++) {
            String word = readWord(in);
            long often = in.getLong();
            in.get();
            known.put(word, i);
            if (i >= words) {
                labels.add(word);
                counts[i - words] = often;
            }
        }
        for (long i = 0; i < parts; i++) {
            kept.put(in.getInt(), in.getInt());
        }
        require(in.get() == 1);
        input = readQuantised(in);
        require(in.get() == 0);
        output = new float[(int) (in.getLong() * in.getLong())];
        in.asFloatBuffer().get(output);
        left = new int[2 * count - 1];
        right = new int[2 * count - 1];
        grow(counts);
    }

    private static void require(boolean right) {
        if (!right) {
            throw new IllegalArgumentException("This is no fastText model as lid.176.ftz is one.");
        }
    }

    private static void skip(ByteBuffer in, int bytes) {
        in.position(in.position() + bytes);
    }

    /** Its bytes as characters: words are looked up, and cut, by bytes. */
    private static String readWord(ByteBuffer in) {
        int start = in.position();
        while (in.get() != 0) {
            // Goes on to the end of the word.
        }
        return new String(in.array(), start, in.position() - start - 1, StandardCharsets.ISO_8859_1);
    }

    private static float[] readQuantised(ByteBuffer in) {
        boolean normed = in.get() == 1;
        int rows = (int) in.getLong(), width = (int) in.getLong();
        byte[] codes = new byte[in.getInt()];
        in.get(codes);
        Quantiser of = new Quantiser(in);
        byte[] norms = new byte[normed ? rows : 0];
        in.get(norms);
        Quantiser norm = normed ? new Quantiser(in) : null;
        float[] made = new float[rows * width];
        for (int row = 0; row < rows; row++) {
            float length = normed ? norm.centroids[norms[row] & 255] : 1;
            for (int d = 0; d < width; d++) {
                int group = d / of.each;
                made[row * width + d] = length * of.at(group, codes[row * of.groups + group] & 255, d - group * of.each);
            }
        }
        return made;
    }

    /** What numbers stand for a byte, for each group of numbers of a vector. */
    private static final class Quantiser {
        final int groups, each, last;
        final float[] centroids;

        Quantiser(ByteBuffer in) {
            int width = in.getInt();
            groups = in.getInt();
            each = in.getInt();
            last = in.getInt();
            centroids = new float[width * CENTROIDS];
            in.asFloatBuffer().get(centroids);
            skip(in, centroids.length * Float.BYTES);
        }

        float at(int group, int code, int place) {
            return centroids[group * CENTROIDS * each + code * (group == groups - 1 ? last : each) + place];
        }
    }

    /** The tree in which labels that are frequent have a short way; they are ordered by that. */
    private void grow(long[] counts) {
        int leaves = counts.length, leaf = leaves - 1, node = leaves;
        long[] all = java.util.Arrays.copyOf(counts, left.length);
        java.util.Arrays.fill(all, leaves, all.length, (long) 1e15);
        for (int i = leaves; i < left.length; i++) {
            int[] least = new int[2];
            for (int side = 0; side < 2; side++) {
                least[side] = leaf >= 0 && all[leaf] < all[node] ? leaf-- : node++;
            }
            left[i] = least[0];
            right[i] = least[1];
            all[i] = all[least[0]] + all[least[1]];
        }
    }

    /** The labels of a line that are at least as probable, the likeliest first. */
    List<Prediction> predict(String line, double least) {
        float[] hidden = new float[dimension];
        int count = 0;
        StringBuilder word = new StringBuilder();
        for (byte one : (line + " ").getBytes(StandardCharsets.UTF_8)) {
            char character = (char) (one & 255);
            if (character > ' ' || character != 0 && "\t\n\u000b\f\r ".indexOf(character) < 0) {
                word.append(character);
            } else if (!word.isEmpty()) {
                count += addWord(word.toString(), hidden);
                word.setLength(0);
            }
        }
        count += addWord(END, hidden);
        float share = (float) (1.0 / count);
        for (int d = 0; d < dimension; d++) {
            hidden[d] *= share;
        }
        List<Prediction> made = new ArrayList<>();
        descend(left.length - 1, 0, logarithm((float) least), hidden, made);
        made.sort(Comparator.comparingDouble(one -> -one.posterior));
        return made;
    }

    private void descend(int node, float score, float least, float[] hidden, List<Prediction> made) {
        if (score < least) {
            return;
        }
        if (node < labels.size()) {
            made.add(new Prediction(labels.get(node), (float) Math.exp(score)));
            return;
        }
        int start = (node - labels.size()) * dimension;
        float sum = 0;
        for (int d = 0; d < dimension; d++) {
            sum += output[start + d] * hidden[d];
        }
        float share = (float) (1 / (1 + Math.exp(-sum)));
        descend(left[node], score + logarithm((float) (1.0 - share)), least, hidden, made);
        descend(right[node], score + logarithm(share), least, hidden, made);
    }

    private static float logarithm(float value) {
        return (float) Math.log(value + 1e-5);
    }

    /** Adds the vectors of a word and of its parts, and tells how many they are. */
    private int addWord(String word, float[] hidden) {
        Integer place = known.get(word);
        if (place == null ? word.startsWith("__label__") : place >= words) {
            return 0;
        }
        int count = 0;
        if (place != null) {
            addRow(place, hidden);
            count++;
        }
        return word.equals(END) ? count : count + addParts("<" + word + ">", hidden);
    }

    private int addParts(String word, float[] hidden) {
        int count = 0;
        for (int start = 0; start < word.length(); start++) {
            if (!begins(word.charAt(start))) {
                continue;
            }
            int hash = HASH, end = start;
            for (int length = 1; end < word.length() && length <= longest; length++) {
                do {
                    // A byte beyond 127 counts as the negative number that it is in C.
                    hash = (hash ^ (byte) word.charAt(end++)) * PRIME;
                } while (end < word.length() && !begins(word.charAt(end)));
                boolean edge = length == 1 && (start == 0 || end == word.length());
                Integer place = length < shortest || edge ? null : kept.get(Integer.remainderUnsigned(hash, buckets));
                if (place != null) {
                    addRow(words + place, hidden);
                    count++;
                }
            }
        }
        return count;
    }

    /** Whether a byte is the first of a character in UTF-8. */
    private static boolean begins(char one) {
        return (one & 0xC0) != 0x80;
    }

    private void addRow(int row, float[] hidden) {
        for (int d = 0; d < dimension; d++) {
            hidden[d] += input[row * dimension + d];
        }
    }
}

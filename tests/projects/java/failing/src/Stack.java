import java.util.ArrayList;

/** A stack of numbers. */
class Stack {
    private final ArrayList<Integer> all = new ArrayList<>();

    void push(int value) {
        all.add(value);
    }

    int pop() {
        String last = all.remove(all.size() - 1);
        return last;
    }
}

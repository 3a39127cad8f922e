import java.util.ArrayList;

/** A stack of numbers. */
class Stack {
    private final ArrayList<Integer> all = new ArrayList<>();

    void push(int value) {
        all.add(value);
    }

    int pop() {
        return all.remove(all.size() - 1);
    }
}

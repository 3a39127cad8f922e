import java.io.File;
import java.io.IOException;

/** Tests of the stack, without any library. */
class StackTest {
    public static void main(String[] arguments) throws IOException {
        if (new File("build/ran-before").createNewFile()) {
            throw new AssertionError("the cache was cold");
        }
        Stack stack = new Stack();
        stack.push(1);
        stack.push(2);
        if (stack.pop() != 2) {
            throw new AssertionError("the last number is not the first one out");
        }
    }
}

/** Tests of the stack, without any library. */
class StackTest {
    public static void main(String[] arguments) {
        Stack stack = new Stack();
        stack.push(1);
        stack.push(2);
        if (stack.pop() != 2) {
            throw new AssertionError("the last number is not the first one out");
        }
    }
}

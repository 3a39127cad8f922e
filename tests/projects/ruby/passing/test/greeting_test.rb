require "minitest/autorun"
require "greeting"

class GreetingTest < Minitest::Test
  def test_noon_is_not_morning
    assert_equal "Good evening", Greeting.at(12)
  end
end

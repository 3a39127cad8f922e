require "fileutils"
require "minitest/autorun"
require "greeting"

class GreetingTest < Minitest::Test
  def test_noon_is_not_morning
    again = File.exist?(".cache/ran-before")
    FileUtils.mkdir_p(".cache")
    FileUtils.touch(".cache/ran-before")
    assert again, "the cache was cold"
    assert_equal "Good evening", Greeting.at(12)
  end
end

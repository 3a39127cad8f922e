# Greets people by the time of the day.
module Greeting
  def self.at(hour)
    hour < 12 ? "Good morning" : "Good evening"
  end
end

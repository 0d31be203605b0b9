# Receives Till's webhooks with nothing but Ruby 3.0 or newer:
#
#   TILL_WEBHOOK_SECRET=whsec_... PORT=3000 ruby receiver.rb
#
# Ruby has no HTTP server, so this program reads requests itself. In Rails or Rack, copy `genuine?` and
# call it with `request.body.read` and `request.get_header("HTTP_X_SIGNATURE")`.
require "json"
require "openssl"
require "set"
require "socket"

# Two, separated by a comma, during the grace period of a rolled secret.
SECRETS = ENV.fetch("TILL_WEBHOOK_SECRET", "").split(",").reject(&:empty?)
abort "TILL_WEBHOOK_SECRET must hold the endpoint's secret, whsec_..." if SECRETS.empty?

TOLERANCE_SECONDS = 300
BODY_BYTES_MAX = 1024 * 1024

# True if Till signed exactly these bytes, with one of our secrets, in the last five minutes.
def genuine?(body, header)
  # The header is split as bytes, because Ruby cannot split text that is invalid in its encoding.
  entries = header.to_s.b.split(",").map { |entry| entry.strip.split("=", 2) }
  time = entries.assoc("t")&.last.to_s
  return false unless time.match?(/\A\d{1,12}\z/)
  return false if (Time.now.to_i - time.to_i).abs > TOLERANCE_SECONDS

  signatures = entries.select { |name, _| name == "v1" }.map { |_, value| value.to_s }
  payload = "v1=#{time}.".b + body
  SECRETS.any? do |secret|
    expected = OpenSSL::HMAC.hexdigest("SHA256", secret, payload)
    signatures.any? { |given| OpenSSL.secure_compare(given, expected) }
  end
end

# An event can arrive more than once. Programs with a database store the IDs in a unique column, in the transaction
# that processes the event.
HANDLED = Set.new
HANDLING = Mutex.new

def handle(event)
  puts "#{event.fetch("id")} #{event.fetch("type")}"
end

# Returns the status of the response.
def receive(body, signature)
  return 400 unless genuine?(body, signature)

  event = JSON.parse(body.dup.force_encoding(Encoding::UTF_8))
  HANDLING.synchronize do
    handle(event) unless HANDLED.include?(event.fetch("id"))
    HANDLED << event.fetch("id")
  end
  200
rescue StandardError => error
  # After any status other than 2xx, Till sends the event again later.
  warn error.full_message(highlight: false)
  500
end

# Reads one request and responds to it.
def serve(connection)
  connection.binmode
  connection.gets("\r\n", 8192)
  headers = {}
  while (line = connection.gets("\r\n", 8192)) && line != "\r\n" && headers.size < 100
    name, value = line.chomp.split(":", 2)
    headers[name.to_s.downcase] = value.to_s.strip
  end
  length = Integer(headers.fetch("content-length", ""), 10, exception: false)
  status =
    if length.nil? || length.negative? then 411
    elsif length > BODY_BYTES_MAX then 413
    else
      # The body is used unchanged. Parsed and serialized again, it would have other bytes than Till signed.
      receive(connection.read(length) || "".b, headers["x-signature"])
    end
  connection.write("HTTP/1.1 #{status} \r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
rescue SystemCallError, IOError
  # The sender has closed the connection; if it was Till, it sends the event again.
ensure
  connection.close
end

$stdout.sync = true
server = TCPServer.new("127.0.0.1", Integer(ENV.fetch("PORT", "3000")))
puts "Listening on http://127.0.0.1:#{server.local_address.ip_port}"
loop { Thread.new(server.accept) { |connection| serve(connection) } }

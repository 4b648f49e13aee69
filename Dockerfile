# The image of natstomp: one static program, no shell, no root. docker build -t natstomp .
FROM golang:1.26.8 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/natstomp ./cmd/natstomp
RUN mkdir /out/data

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/natstomp /natstomp
# Without a configuration the embedded NATS keeps its messages in ./natstomp-data: mount a volume at /data.
COPY --from=build --chown=65532:65532 /out/data /data
WORKDIR /data
USER 65532:65532
EXPOSE 61613 15674 8161
ENTRYPOINT ["/natstomp"]
CMD ["serve"]

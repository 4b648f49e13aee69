// Package deploy holds what is shipped for containers together: docker-compose.yml, the Dockerfile and the files that
// they mount. There is no container engine in it.
package deploy
